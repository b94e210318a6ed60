// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Flags of an interface: netdevice(7).
private let (interfaceIsUp, interfaceIsLoopback): (UInt32, UInt32) = (0x1, 0x8)

/// Whether an interface other than the loopback interface is up and has an IP address (getifaddrs(3)). True if the
/// system does not say.
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
  return [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family))
}
