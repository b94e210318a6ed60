/// Whom a limit counts an address as: an IPv4 address as itself, an IPv6 address as its /64, because that is the least a
/// customer of any provider has.
enum ConnectionSource {
  /// - Parameter address: as text; nil for a peer without one.
  static func name(of address: String?) -> String {
    guard let address, let bytes = IPAddressBytes.parse(String(address.prefix { $0 != "%" })) else { return "unknown" }
    let plain = PrivateAddress.withoutEmbedding(bytes)
    guard plain.count == 16 else { return plain.map(String.init).joined(separator: ".") }
    return plain.prefix(8).map { String($0, radix: 16) }.joined(separator: ":") + "/64"
  }
}
