// SPDX-License-Identifier: Apache-2.0
/// Parses `HOST` or `HOST:PORT` in configurations; an IPv6 address is in brackets.
package enum BrokerAddress {
  /// - Returns: nil for other text. The default port is 8883, the registered port of MQTT over TLS.
  package static func parse(_ text: String) -> (host: String, port: UInt16)? {
    let isBracketed = text.hasPrefix("[")
    let end = isBracketed ? text.firstIndex(of: "]") : text.firstIndex(of: ":") ?? text.endIndex
    guard let end else { return nil }
    let host = isBracketed ? text[..<end].dropFirst() : text[..<end]
    let rest = isBracketed ? text[text.index(after: end)...] : text[end...]
    guard !host.isEmpty, host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"/@[]".utf8.contains($0) }) else {
      return nil
    }
    if rest.isEmpty { return (String(host), 8883) }
    guard rest.hasPrefix(":"), let port = UInt16(rest.dropFirst()), port > 0 else { return nil }
    return (String(host), port)
  }
}
