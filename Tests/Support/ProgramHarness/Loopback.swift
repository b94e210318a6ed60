// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// Listens on a free port of 127.0.0.1; every connection gets a thread.
package final class Loopback: Sendable {
  package let port: Int
  /// -1 after its end: the number may then be another file's.
  private let descriptor: Observed<Int32>

  package init(_ serve: @escaping @Sendable (Int32) -> Void) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = Self.address(0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && listen(descriptor, 64) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    guard isListening else { throw OutputTimeoutError(description: "a free port: \(String(cString: strerror(errno)))") }
    let listener = Observed(descriptor)
    self.descriptor = listener
    port = Int(UInt16(bigEndian: address.sin_port))
    Thread.detachNewThread {
      while true {
        let caller = accept(descriptor, nil, nil)
        guard caller >= 0 else { break }
        _ = fcntl(caller, F_SETFD, FD_CLOEXEC)
        Thread.detachNewThread { serve(caller) }
      }
      listener.change { $0 = -1 }
      Glibc.close(descriptor)
    }
  }

  /// Accepts no more connections.
  package func close() { descriptor.change { if $0 >= 0 { shutdown($0, Int32(SHUT_RDWR)) } } }

  package static func connect(to port: Int) -> Int32? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = address(port)
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if code == 0 { return descriptor }
    Glibc.close(descriptor)
    return nil
  }

  private static func address(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}

/// Sends all bytes; returns false if the peer has disconnected.
package func sendAll(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
  var rest = bytes
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    guard count > 0 else { return false }
    rest = rest.dropFirst(count)
  }
  return true
}
