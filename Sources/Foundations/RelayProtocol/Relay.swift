// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The network process, as the device process reaches it: one connection of a unix socket for each order.
package struct Relay: Sendable {
  /// How long the network process may take to accept an order: it does nothing else first.
  package static let patience = Duration.milliseconds(1500)
  /// The same for enrollments, and for commands that run without the service, which are not repeated: a board that is
  /// starting can be busy for seconds.
  package static let commandPatience = Duration.seconds(15)

  /// The path of the socket; empty in tests.
  package let path: String
  let patience: Duration
  private let connect: @Sendable () throws(RelayError) -> RelaySocket

  /// - Parameter path: of the socket.
  package init(path: String, patience: Duration = Self.patience) {
    self.init(path: path, patience: patience) { () throws(RelayError) in try RelaySocket.connected(to: path) }
  }

  init(
    path: String = "", patience: Duration = Self.patience,
    connect: @escaping @Sendable () throws(RelayError) -> RelaySocket
  ) {
    self.path = path
    self.patience = patience
    self.connect = connect
  }

  /// The same network process, with another time to accept an order.
  package func with(patience: Duration) -> Relay { Relay(path: path, patience: patience, connect: connect) }

  /// Gives an order.
  /// - Returns: the connection, after the network process has accepted the order.
  func open(_ order: RelayOrder) async throws(RelayError) -> RelaySocket {
    let bytes = order.bytes
    guard bytes.count <= RelayOrder.longest else { throw .tooLong(limit: RelayOrder.longest) }
    let socket = try connect()
    let due = ContinuousClock.now + patience
    let reply: RelayReply
    do throws(RelayError) {
      try await socket.send(bytes, until: due)
      reply = try await socket.reply(until: due)
    } catch { throw error == .timedOut ? .notAnswering : error }
    switch reply {
    case .accepted: return socket
    case .refused(let reason): throw .refused(reason)
    case let other: throw .malformed("\(other.name) before the order was accepted")
    }
  }
}

extension RelaySocket {
  /// The next reply.
  /// - Throws: `.closed` at the end of the connection.
  func reply(until due: ContinuousClock.Instant? = nil) async throws(RelayError) -> RelayReply {
    guard let message = try await receive(atMost: RelayReply.longest, until: due) else { throw .closed }
    return try RelayReply(message)
  }
}

/// Reads a file of authorities for the network process.
/// - Returns: nil if it cannot be read, or is longer than `RelayTrust.longestAuthorities`.
func readAuthorities(_ path: String) -> [UInt8]? {
  guard let stream = fopen(path, "re") else { return nil }
  defer { fclose(stream) }
  var bytes: [UInt8] = []
  var part = [UInt8](repeating: 0, count: 4096)
  while bytes.count <= RelayTrust.longestAuthorities {
    let count = fread(&part, 1, part.count, stream)
    if count == 0 { return ferror(stream) == 0 ? bytes : nil }
    bytes += part[..<count]
  }
  return nil
}
