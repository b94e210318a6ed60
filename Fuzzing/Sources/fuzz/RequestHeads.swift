// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import ReferenceProtocol

@testable import ServerParsers

/// Parses header fields of requests to the token server, the client addresses for the limits per source, and what a
/// load balancer writes before a connection.
func readRequestHead(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 8)
  let text = input.text
  switch input.choice {
  case 0: readAuthorization(text)
  case 1: if let (id, secret) = AuthorizationHeader.basic(of: "Basic \(input.bytes.base64)") { check(id, secret) }
  case 2: require((0...LongPollWait.longest).contains(LongPollWait.seconds(preferredBy: text)), "a wait is bounded")
  case 3: resume(after: text)
  case 4: readKey(text)
  case 5: _ = Form.isMediaType(text)
  case 6:
    readAddress(text)
    readProxyHeader(input.bytes)
  default:
    let shown = text.sanitized(atMost: 100)
    require(shown.isSafeToShow && shown.unicodeScalars.count <= 100, "sanitized text is safe to show")
    guard let versions = ProtocolVersions(text) else { return }
    require(ProtocolVersions(versions.text) == versions, "versions are written as they are read")
    _ = ProtocolMismatchError(device: versions, server: .supported)
  }
}

private func readAuthorization(_ header: String) {
  for scheme in ["dpop", "bearer", "basic"] {
    guard let word = AuthorizationHeader.word(of: header, scheme: scheme) else { continue }
    require(!word.isEmpty && !word.contains(" "), "a word is one")
  }
  if let (id, secret) = AuthorizationHeader.basic(of: header) { check(id, secret) }
}

private func check(_ id: String, _ secret: String) {
  require(!id.utf8.contains(UInt8(ascii: ":")), "a user-id has no colon")
  _ = SHA256.hash(Array(secret.utf8))
}

private func resume(after cursor: String) {
  var history = EventHistory()
  for number in 0..<20 { history.note(DeviceEvent(.request, transactionID: "\(number)")) }
  let page = history.events(after: cursor, in: "0")
  require(page.events.count <= EventHistory.remembered, "no more than is remembered")
  require(history.events(after: page.cursor, in: "0").events.isEmpty, "the page's own cursor is the last")
}

private func readKey(_ text: String) {
  guard let key = IdempotencyKey.parse(text) else { return }
  require(key.utf8.count == 36 && IdempotencyKey.parse(key) == key, "a key has one form")
}

private func readProxyHeader(_ bytes: [UInt8]) {
  for count in [min(bytes.count, 15), bytes.count] {
    guard case .header(let header) = ProxyHeader.parse(bytes.prefix(count)) else { continue }
    require((16...ProxyHeader.largest).contains(header.length) && header.length <= count, "a header is bounded")
    require(header.source.map { [4, 16].contains($0.count) } ?? true, "an address has 4 or 16 bytes")
    _ = header.source.map { ConnectionSource.name(ofBytes: $0) }
  }
}

private func readAddress(_ text: String) {
  _ = ConnectionSource.name(of: text)
  guard let range = AddressRange(text) else { return }
  for address in [[UInt8](repeating: 127, count: 4), [UInt8](repeating: 0xFE, count: 16), []] {
    _ = (range.contains(address), PrivateAddress.contains(address))
  }
}
