// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

// The fuzzer compiles this file in one module with the core's parsers.
#if canImport(TokenServerCore)
  import TokenServerCore
#endif

/// The key of a source address for limits: an IPv4 address itself, the /64 of an IPv6 address, because providers assign
/// at least a /64 to each customer.
enum ConnectionSource {
  /// - Parameter address: as text; nil for a peer without an address.
  static func name(of address: String?) -> String {
    guard let address, let bytes = IPAddressBytes.parse(String(address.prefix { $0 != "%" })) else { return "unknown" }
    return name(ofBytes: bytes)
  }

  /// - Parameter bytes: 4 or 16.
  static func name(ofBytes bytes: [UInt8]) -> String {
    let plain = PrivateAddress.withoutEmbedding(bytes)
    guard plain.count == 16 else { return plain.map(String.init).joined(separator: ".") }
    return plain.prefix(8).map { String($0, radix: 16) }.joined(separator: ":") + "/64"
  }

  /// The /48 of an IPv6 source, because providers assign at most a /48 to each customer; nil for other sources.
  static func site(of name: String) -> String? {
    guard name.hasSuffix("/64") else { return nil }
    return name.split(separator: ":").prefix(6).joined(separator: ":") + "/48"
  }
}
