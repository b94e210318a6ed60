// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc

/// Sends a datagram to a Unix socket.
/// - Parameters:
///   - path: the path of the socket; a leading `@` stands for an abstract address.
///   - waits: whether to wait while the receiver's queue is full.
/// - Returns: whether the socket has taken all of it.
package func sendDatagram(_ bytes: [UInt8], to path: String, waits: Bool) -> Bool {
  guard let (address, length) = address(path) else { return false }
  let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
  guard descriptor >= 0 else { return false }
  defer { close(descriptor) }
  let sent = withUnsafePointer(to: address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL) | (waits ? 0 : Int32(MSG_DONTWAIT)), $0, length)
    }
  }
  return sent == bytes.count
}

private func address(_ path: String) -> (sockaddr_un, socklen_t)? {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  var bytes = Array(path.utf8)
  guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
  if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
  // An abstract address ends with its length.
  return (address, socklen_t(MemoryLayout<sa_family_t>.size + bytes.count))
}
