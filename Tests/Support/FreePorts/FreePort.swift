// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Ports of 127.0.0.1 for the servers that tests start.
package enum FreePort {
  /// Outside the range that the kernel assigns to clients (`ip_local_port_range`): otherwise a client that connects to
  /// a stopped server could get the same port and connect to itself, or take it from a server that starts.
  private static let range = 10_000..<32_000

  /// Reserves a port on which no program listens. No test of this machine gets it again while this process lives.
  /// - Parameter count: of ports, one after the other.
  /// - Returns: the first of them.
  package static func reserve(count: Int = 1) throws -> Int {
    for _ in 1...1000 {
      let ports = (0..<count).map { [first = Int.random(in: range.dropLast(count))] in first + $0 }
      if ports.allSatisfy({ isFree($0) && isReserved($0) }) { return ports[0] }
    }
    throw NoFreePortError()
  }

  package struct NoFreePortError: Error, CustomStringConvertible {
    package let description = "no free port of 127.0.0.1 from \(range.lowerBound) on"
  }

  private static func isFree(_ port: Int) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return bind(descriptor, &address, MemoryLayout<sockaddr_in>.size)
  }

  /// Reserves a port with a name of Linux's abstract socket addresses, which one process can have, until it ends.
  private static func isReserved(_ port: Int) -> Bool {
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array("\0approval-token-test-port-\(port)".utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    if bind(descriptor, &address, MemoryLayout<sa_family_t>.size + name.count) { return true }
    close(descriptor)
    return false
  }

  private static func bind<Address>(_ descriptor: Int32, _ address: inout Address, _ size: Int) -> Bool {
    withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(descriptor, $0, socklen_t(size)) == 0 }
    }
  }
}
