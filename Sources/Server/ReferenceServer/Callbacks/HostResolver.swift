// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import NIOCore

/// Resolves host names with the system's resolver.
enum HostResolver {
  struct LookupError: Error, CustomStringConvertible {
    let description: String
  }

  /// Resolves a name in a separate thread, so that a slow name server delays no other name. An address needs none.
  /// - Parameter host: a name, or an address without brackets.
  /// - Returns: the addresses in the order in which to try them (RFC 6724).
  static func addresses(of host: String, port: Int, on eventLoop: any EventLoop) -> EventLoopFuture<[SocketAddress]> {
    if let address = try? SocketAddress(ipAddress: host, port: port) {
      return eventLoop.makeSucceededFuture([address])
    }
    let promise = eventLoop.makePromise(of: [SocketAddress].self)
    Thread.detachNewThread { promise.completeWith(Result { try lookUp(host, port: port) }) }
    return promise.futureResult
  }

  private static func lookUp(_ host: String, port: Int) throws -> [SocketAddress] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &first)
    guard code == 0 else { throw LookupError(description: "\(host): \(String(cString: gai_strerror(code)))") }
    defer { freeaddrinfo(first) }
    return sequence(first: first) { $0?.pointee.ai_next }.compactMap { entry in
      guard let entry = entry?.pointee, let address = entry.ai_addr else { return nil }
      switch entry.ai_family {
      case AF_INET:
        return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee) }
      case AF_INET6:
        return address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee) }
      default: return nil
      }
    }
  }
}
