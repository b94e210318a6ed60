// SPDX-License-Identifier: Apache-2.0
import CBench
import Glibc

/// TCP sockets on the loopback address, non-blocking.
enum Loopback {
  static let address = "127.0.0.1"

  /// A socket that is connecting; it becomes writable when it is connected.
  static func connecting(to port: UInt16) -> Int32 {
    let descriptor = make()
    let code = withAddress(port) { connect(descriptor, $0, $1) }
    guard code == 0 || errno == EINPROGRESS else { fatalError("connect: errno \(errno)") }
    return descriptor
  }

  /// - Returns: the socket and its free port.
  static func listening() -> (descriptor: Int32, port: UInt16) {
    let descriptor = make()
    guard withAddress(0, { bind(descriptor, $0, $1) }) == 0, listen(descriptor, 1024) == 0 else {
      fatalError("listen: errno \(errno)")
    }
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }

  /// Whether a program listens on the port.
  static func accepts(_ port: UInt16) -> Bool {
    let descriptor = connecting(to: port)
    defer { close(descriptor) }
    var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return Glibc.poll(&poll, 1, 100) == 1 && poll.revents & Int16(POLLERR | POLLHUP) == 0
  }

  /// A port that was free a moment ago, for a program that cannot choose one.
  static func freePort() -> UInt16 {
    let (descriptor, port) = listening()
    close(descriptor)
    return port
  }

  private static func make() -> Int32 {
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    let descriptor = socket(AF_INET, Int32(kind), 0)
    guard descriptor >= 0 else { fatalError("socket: errno \(errno)") }
    var yes: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    return descriptor
  }

  private static func withAddress(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var ip = sockaddr_in()
    ip.sin_family = sa_family_t(AF_INET)
    ip.sin_port = port.bigEndian
    inet_pton(AF_INET, address, &ip.sin_addr)
    return withUnsafePointer(to: &ip) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
