// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// The portal's callback endpoint: records every POST.
package final class CallbackSink: Sendable {
  package struct Call: Sendable {
    package let path: String
    package let members: [String: String]
  }

  private let loopback: Loopback
  private let received: Observed<[Call]>

  /// - Parameter accepts: whether a call gets the response 204, or 503; it is recorded in both cases.
  package init(accepts: @escaping @Sendable (Call) -> Bool = { _ in true }) throws {
    let received = Observed([Call]())
    self.received = received
    loopback = try Loopback { caller in
      Self.serve(caller) { call in
        received.change { $0.append(call) }
        return accepts(call)
      }
      Glibc.close(caller)
    }
  }

  package var address: String { "http://127.0.0.1:\(loopback.port)" }
  package var calls: [Call] { received.value }

  package func close() { loopback.close() }

  package func firstCall() async throws -> Call {
    guard let call = await received.first(within: patience, { $0.first }) else {
      throw OutputTimeoutError(description: "a callback")
    }
    return call
  }

  private static func serve(_ caller: Int32, _ take: (Call) -> Bool) {
    var buffered: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      if let (call, length) = parse(buffered) {
        buffered.removeFirst(length)
        let response = take(call) ? "204 No Content\r\n" : "503 Service Unavailable\r\nContent-Length: 0\r\n"
        guard sendAll(Array("HTTP/1.1 \(response)\r\n".utf8)[...], to: caller) else { return }
        continue
      }
      let count = read(caller, &chunk, chunk.count)
      guard count > 0 else { return }
      buffered += chunk[..<count]
    }
  }

  /// - Returns: nil while the request is not complete.
  private static func parse(_ bytes: [UInt8]) -> (Call, length: Int)? {
    guard let blank = Data(bytes).range(of: Data("\r\n\r\n".utf8)) else { return nil }
    let head = String(decoding: bytes[..<blank.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    let length = head.first { $0.lowercased().hasPrefix("content-length:") }.flatMap {
      Int($0.dropFirst("content-length:".count).trimmingCharacters(in: .whitespaces))
    }
    let end = blank.upperBound + (length ?? 0)
    guard bytes.count >= end else { return nil }
    let words = head[0].split(separator: " ")
    let body = Data(bytes[blank.upperBound..<end])
    let members = (try? JSONDecoder().decode([String: String].self, from: body)) ?? [:]
    return (Call(path: words.count > 1 ? String(words[1]) : "", members: members), end)
  }
}
