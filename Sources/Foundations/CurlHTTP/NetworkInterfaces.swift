// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Flags of an interface: netdevice(7).
private let (interfaceIsUp, interfaceIsLoopback): (UInt32, UInt32) = (0x1, 0x8)

/// Whether an interface other than the loopback interface is up and has an IP address that is not link-local
/// (getifaddrs(3)): an interface has a link-local one also while no network gives it another. True if the system does
/// not say.
func hasNetworkInterface() -> Bool {
  var first: UnsafeMutablePointer<ifaddrs>?
  guard getifaddrs(&first) == 0 else { return true }
  defer { freeifaddrs(first) }
  var next = first
  while let interface = next {
    if isUsable(interface.pointee) { return true }
    next = interface.pointee.ifa_next
  }
  return false
}

private func isUsable(_ interface: ifaddrs) -> Bool {
  let flags = UInt32(interface.ifa_flags)
  guard flags & interfaceIsUp != 0, flags & interfaceIsLoopback == 0, let address = interface.ifa_addr else {
    return false
  }
  return isUsable(UnsafePointer(address))
}

/// - Parameter address: a `sockaddr_in` or `sockaddr_in6` if its family says so.
func isUsable(_ address: UnsafePointer<sockaddr>) -> Bool {
  switch Int32(address.pointee.sa_family) {
  case AF_INET:
    // 169.254.0.0/16, RFC 3927.
    address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
      UInt32(bigEndian: $0.pointee.sin_addr.s_addr) >> 16 != 0xa9fe
    }
  case AF_INET6:
    // fe80::/10, RFC 4291.
    address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
      withUnsafeBytes(of: $0.pointee.sin6_addr) { $0[0] != 0xfe || $0[1] & 0xc0 != 0x80 }
    }
  default: false
  }
}
