// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc

/// The address where the push listener listens: "127.0.0.1:8765" or "[::1]:8765". Numeric only, because the address of
/// a host name can change.
package struct ListenAddress: Equatable, Sendable, CustomStringConvertible {
  let host: String
  let port: UInt16

  package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  /// - Returns: nil unless the text is an IP address and a port from 1 to 65535.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":") else { return nil }
    var host = text[..<colon]
    let digits = text[text.index(after: colon)...]
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
      guard host.contains(":") else { return nil }
    } else if host.contains(":") {
      return nil
    }
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits), port > 0 else {
      return nil
    }
    self.host = String(host)
    self.port = port
    guard !host.isEmpty, (try? withResolved { _ in }) != nil else { return nil }
  }

  package enum ListenError: Error, CustomStringConvertible {
    case address(ListenAddress, errno: Int32)
    case noThread

    package var description: String {
      switch self {
      case .address(let address, let errno):
        "[push] listen: cannot listen on \(address): \(String(cString: strerror(errno)))"
      case .noThread: "[push] listen: the system has no thread left"
      }
    }
  }

  /// - Returns: a listening socket.
  func listen() throws(ListenError) -> Int32 {
    var result: Result<Int32, ListenError> = .failure(.address(self, errno: EADDRNOTAVAIL))
    try withResolved { info in
      let descriptor = socket(info.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      var yes: Int32 = 1
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
      if descriptor >= 0, bind(descriptor, info.ai_addr, info.ai_addrlen) == 0, Glibc.listen(descriptor, 8) == 0 {
        result = .success(descriptor)
      } else {
        result = .failure(.address(self, errno: errno))
        if descriptor >= 0 { close(descriptor) }
      }
    }
    return try result.get()
  }

  private func withResolved(_ body: (addrinfo) -> Void) throws(ListenError) {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, "\(port)", &hints, &found) == 0, let found else {
      throw .address(self, errno: EADDRNOTAVAIL)
    }
    defer { freeaddrinfo(found) }
    body(found.pointee)
  }
}
