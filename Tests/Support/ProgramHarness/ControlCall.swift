// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// A call on the control socket of a running service, as the commands make it, but without a process for each call. The
/// connection is closed when this object is released.
package final class ControlCall: Sendable {
  /// The request of a command with the members that tests need. Sent as one JSON line.
  struct Request: Encodable, Sendable {
    let request: String
    var milliseconds: Int64?
    var keys: [String]?
    var finger: String?
    var badge: String?
    var touch: Bool?
    var data: String?
    var retry: String?
  }

  /// The responses of the service, one JSON line each.
  package let output: Transcript
  private let descriptor: Int32

  init(_ request: Request, at path: String) throws {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let line = Array(try JSONEncoder().encode(request)) + [UInt8(ascii: "\n")]
    // The reader closes this duplicate.
    let reading = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard connect(descriptor, to: path), sendAll(line[...], to: descriptor), reading >= 0 else {
      let reason = String(cString: strerror(errno))
      for end in [descriptor, reading] where end >= 0 { close(end) }
      throw OutputTimeoutError(description: "a service that answers at \(path): \(reason)")
    }
    self.descriptor = descriptor
    output = Transcript("\(request.request) at \(path)", reading: reading)
  }

  deinit {
    shutdown(descriptor, Int32(SHUT_RDWR))
    close(descriptor)
  }

  private struct Refusal: Decodable { let error: String }

  /// Returns the response of a call that has exactly one.
  func answer<Answer: Decodable>(_ type: Answer.Type = Answer.self) async throws -> Answer {
    let line = try await output.line(with: "{")
    let (data, decoder) = (Data(line.utf8), JSONDecoder())
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    if let refusal = try? decoder.decode(Refusal.self, from: data) {
      throw OutputTimeoutError(description: refusal.error)
    }
    return try decoder.decode(type, from: data)
  }
}

private func connect(_ descriptor: Int32, to path: String) -> Bool {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  let bytes = Array(path.utf8)
  guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  } == 0
}
