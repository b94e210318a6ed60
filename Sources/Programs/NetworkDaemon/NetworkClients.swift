// SPDX-License-Identifier: Apache-2.0
import CLinux
import CurlHTTP
import Glibc
import HTTP
import RelayProtocol
import Synchronization

/// The HTTP clients of the network process: one for each server and each set of rules for its certificate, so that
/// requests reuse connections.
final class NetworkClients: Sendable {
  /// The number of clients that are kept. Each has at most four idle connections.
  static let capacity = 16

  private struct Key: Hashable {
    let origin: String
    let trust: RelayTrust
  }

  /// The last used is last.
  private let clients = Mutex<[(key: Key, client: NetworkClient)]>([])

  /// - Throws: if the authorities cannot be given to the library.
  func client(_ trust: RelayTrust, for request: HTTPRequest) throws(HTTPTransportError) -> NetworkClient {
    guard let origin = ServerTrust.origin(of: request.url) else {
      throw .unsendable("\(request.url) is not an https address")
    }
    let key = Key(origin: origin, trust: trust)
    let known = clients.withLock { clients -> NetworkClient? in
      guard let index = clients.firstIndex(where: { $0.key == key }) else { return nil }
      clients.append(clients.remove(at: index))
      return clients.last?.client
    }
    if let known { return known }
    let client = try NetworkClient(trust)
    // Released outside of the lock: a client waits for the end of its thread.
    let surplus = clients.withLock { clients in
      clients.append((key, client))
      return clients.count > Self.capacity ? clients.removeFirst().client : nil
    }
    withExtendedLifetime(surplus) {}
    return client
  }

  /// Whether the threads of all clients have reacted since the last call.
  func haveReacted() -> Bool {
    let present = clients.withLock { $0.map(\.client) }
    return present.map { $0.hasReacted() }.allSatisfy(\.self)
  }
}

/// An HTTP client with the authorities that it reads.
final class NetworkClient: HTTPTransport {
  private let client: CurlHTTPTransport
  private let authorities: AuthorityFile?

  init(_ trust: RelayTrust) throws(HTTPTransportError) {
    authorities = try AuthorityFile(trust.authorities)
    client = CurlHTTPTransport(trust: trust.serverTrust(authorityFile: authorities?.path))
  }

  func hasReacted() -> Bool { client.hasReacted() }

  func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse { try await client.send(request) }

  func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream {
    try await client.stream(request)
  }
}

/// Authorities as a file in memory, for libraries that read files.
final class AuthorityFile: Sendable {
  private let descriptor: Int32

  var path: String { "/proc/self/fd/\(descriptor)" }

  /// - Returns: nil without authorities.
  init?(_ authorities: [UInt8]?) throws(HTTPTransportError) {
    guard let authorities else { return nil }
    descriptor = approval_linux_file_in_memory("authorities", authorities, authorities.count)
    guard descriptor >= 0 else {
      throw .untrusted("no file for the authorities: \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }
}
