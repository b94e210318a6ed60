// SPDX-License-Identifier: Apache-2.0
import Glibc

package struct SocketError: Error {
  package let what: String
  package let number: Int32
}

/// Opens a TCP connection to a port of this machine.
/// - Parameter source: the client's address, such as `127.0.0.2`.
/// - Returns: a descriptor, which the caller closes.
package func connect(to port: Int, from source: String) throws -> Int32 {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  guard descriptor >= 0 else { throw SocketError(what: "socket", number: errno) }
  func address(_ text: String, _ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    inet_pton(AF_INET, text, &address.sin_addr)
    return address
  }
  func call(_ what: String, _ address: sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) throws {
    var address = address
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
    guard result == 0 else {
      close(descriptor)
      throw SocketError(what: what, number: errno)
    }
  }
  try call("bind", address(source, 0)) { bind(descriptor, $0, $1) }
  try call("connect", address("127.0.0.1", UInt16(port))) { Glibc.connect(descriptor, $0, $1) }
  return descriptor
}

/// Listens at a free port of an address of this machine.
/// - Returns: a descriptor, which the caller closes, and the port.
package func listen(at address: String) throws -> (descriptor: Int32, port: Int) {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  guard descriptor >= 0 else { throw SocketError(what: "socket", number: errno) }
  var own = sockaddr_in()
  own.sin_family = sa_family_t(AF_INET)
  inet_pton(AF_INET, address, &own.sin_addr)
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  let isListening = withUnsafeMutablePointer(to: &own) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(descriptor, $0, length) == 0 && Glibc.listen(descriptor, 1024) == 0
        && getsockname(descriptor, $0, &length) == 0
    }
  }
  guard isListening else {
    close(descriptor)
    throw SocketError(what: "listen", number: errno)
  }
  return (descriptor, Int(UInt16(bigEndian: own.sin_port)))
}

/// Raises this process's soft limit of open files.
package func raiseDescriptorLimit(to wanted: UInt) throws {
  let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  var limit = rlimit()
  getrlimit(resource, &limit)
  guard limit.rlim_cur < wanted else { return }
  limit.rlim_cur = min(limit.rlim_max, wanted)
  guard limit.rlim_cur >= wanted, setrlimit(resource, &limit) == 0 else {
    throw SocketError(what: "at least \(wanted) open files are needed", number: errno)
  }
}
