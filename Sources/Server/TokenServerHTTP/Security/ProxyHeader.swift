// SPDX-License-Identifier: Apache-2.0

/// The header of a connection that a load balancer passes on: the PROXY protocol, version 2
/// (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, section 2.2).
struct ProxyHeader: Equatable {
  /// The client's address, 4 or 16 bytes; nil if the balancer connects for itself, or does not know the client.
  let source: [UInt8]?
  /// The bytes of the whole header.
  let length: Int

  enum Parsed: Equatable {
    case header(ProxyHeader)
    /// More bytes are needed, at most `largest` in all.
    case incomplete
    case invalid
  }

  /// In bytes: as the protocol's version 1 and the largest addresses need. Balancers send at most some 100.
  static let largest = 536
  private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]

  /// - Parameter bytes: what was received so far, from the first byte of the connection.
  static func parse(_ bytes: some Collection<UInt8>) -> Parsed {
    guard signature.starts(with: bytes.prefix(12)) else { return .invalid }
    let fixed = Array(bytes.prefix(16))
    guard fixed.count == 16 else { return .incomplete }
    let length = 16 + Int(fixed[14]) << 8 + Int(fixed[15])
    guard fixed[12] == 0x20 || fixed[12] == 0x21, length <= largest else { return .invalid }
    let addresses = Array(bytes.dropFirst(16).prefix(length - 16))
    guard addresses.count == length - 16 else { return .incomplete }
    let isLocal = fixed[12] == 0x20
    switch fixed[13] {
    case _ where isLocal, 0x00, 0x31: return .header(ProxyHeader(source: nil, length: length))
    case 0x11 where addresses.count >= 12:
      return .header(ProxyHeader(source: Array(addresses.prefix(4)), length: length))
    case 0x21 where addresses.count >= 36:
      return .header(ProxyHeader(source: Array(addresses.prefix(16)), length: length))
    default: return .invalid
    }
  }
}
