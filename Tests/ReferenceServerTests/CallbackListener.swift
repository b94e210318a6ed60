// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import NIOPosix
import ServerTestSupport
import Synchronization

@testable import ReferenceServer
@testable import TokenServerCore

/// A portal's listening socket. It accepts connections and responds only if configured to.
final class CallbackListener: Sendable {
  let port: Int
  private let descriptor: Int32
  private let responses: Int
  private let response: [UInt8]
  private let accepted = Atomic(0)
  private let answered = Atomic(0)

  /// - Parameters:
  ///   - responses: the number of responses on one connection; the request after these ends the connection.
  ///   - response: the head of each.
  init(
    answering: Bool, address: String = "127.0.0.1", responses: Int = 1,
    response: String = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
  ) throws {
    self.responses = responses
    self.response = Array(response.utf8)
    (descriptor, port) = try listen(at: address)
    if answering { Thread.detachNewThread { [self] in answer() } }
  }

  var connections: Int { accepted.load(ordering: .sequentiallyConsistent) }
  /// Requests that came.
  var count: Int { answered.load(ordering: .sequentiallyConsistent) }

  func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  private func answer() {
    while true {
      let connection = accept(descriptor, nil, nil)
      guard connection >= 0 else { return }
      accepted.add(1, ordering: .sequentiallyConsistent)
      // Each in a thread of its own: the client also opens connections on which it sends nothing for a minute.
      Thread.detachNewThread { [self] in answer(connection) }
    }
  }

  private func answer(_ connection: Int32) {
    defer { close(connection) }
    for number in 0... {
      guard receive(from: connection) else { return }
      answered.add(1, ordering: .sequentiallyConsistent)
      guard number < responses else { return }
      _ = send(connection, response, response.count, Int32(MSG_NOSIGNAL))
    }
  }

  /// Reads one request, to the end of its JSON.
  /// - Returns: false if the client has closed the connection.
  private func receive(from connection: Int32) -> Bool {
    var bytes = [UInt8](repeating: 0, count: 4096)
    var last: UInt8 = 0
    while last != UInt8(ascii: "}") {
      let count = recv(connection, &bytes, bytes.count, 0)
      guard count > 0 else { return false }
      last = bytes[count - 1]
    }
    return true
  }
}

extension CallbackDelivery {
  /// To the addresses of these ranges, without accounts.
  init(allowing ranges: [String]) {
    self.init(
      configured: [], allowed: ranges.compactMap { AddressRange($0) },
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
  }
}
