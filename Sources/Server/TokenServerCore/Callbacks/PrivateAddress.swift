// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

/// Addresses that are not globally reachable: loopback, link-local, private and reserved ones (RFC 6890). A callback to
/// such an address would let a portal reach the server's internal network (SSRF).
package enum PrivateAddress {
  /// - Parameter address: 4 or 16 bytes, network byte order.
  package static func contains(_ address: [UInt8]) -> Bool {
    let address = withoutEmbedding(address)
    return (address.count == 4 ? ipv4 : ipv6).contains { $0.contains(address) }
  }

  /// The IPv4 address inside an IPv6 address: mapped (RFC 4291 §2.5.5.2), NAT64 (RFC 6052), 6to4 (RFC 3056).
  package static func withoutEmbedding(_ address: [UInt8]) -> [UInt8] {
    guard address.count == 16 else { return address }
    if mapped.contains(address) || nat64.contains(address) { return Array(address.suffix(4)) }
    return sixToFour.contains(address) ? Array(address[2..<6]) : address
  }

  /// The IPv4 address inside a mapped IPv6 address (RFC 4291 §2.5.5.2): the same peer at another kind of socket.
  package static func unmapped(_ address: [UInt8]) -> [UInt8] {
    address.count == 16 && mapped.contains(address) ? Array(address.suffix(4)) : address
  }

  private static let mapped = AddressRange("::ffff:0:0/96")!
  private static let nat64 = AddressRange("64:ff9b::/96")!
  private static let sixToFour = AddressRange("2002::/16")!

  private static let ipv4 = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
  ].map { AddressRange($0)! }

  private static let ipv6 = [
    "::/127", "64:ff9b:1::/48", "100::/64", "2001:db8::/32", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
  ].map { AddressRange($0)! }
}

/// An address range: `ADDRESS` or `ADDRESS/BITS`.
package struct AddressRange: Sendable, Equatable {
  private let address: [UInt8]
  private let bits: Int

  package init?(_ text: String) {
    let halves = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = IPAddressBytes.parse(String(halves[0])) else { return nil }
    guard halves.count == 2 else {
      self.address = address
      bits = address.count * 8
      return
    }
    guard halves[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let bits = Int(halves[1]),
      (0...address.count * 8).contains(bits)
    else { return nil }
    self.address = address
    self.bits = bits
  }

  package func contains(_ other: [UInt8]) -> Bool {
    guard other.count == address.count else { return false }
    let whole = bits / 8
    guard address[..<whole] == other[..<whole] else { return false }
    guard bits % 8 > 0 else { return true }
    return (address[whole] ^ other[whole]) >> (8 - bits % 8) == 0
  }
}
