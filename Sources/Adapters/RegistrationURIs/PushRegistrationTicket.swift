// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The push part of a QR code: valid for one registration, for a minute or two.
package struct PushRegistrationTicket: Sendable {
  /// The registration's message ID, to be sent back.
  package let messageID: String
  /// The key shared with AM for the lifetime of the account; at least 32 bytes.
  package let secret: SecretBytes
  package let challenge: [UInt8]
  /// Absolute URLs that begin with `http://` or `https://`, to be used without further normalization.
  package let registrationURL: String
  package let authenticationURL: String
  /// `name=value`, for the load balancer in front of AM.
  package let cookie: String?
  /// AM's identifier of the user, from AM 8.0.1 on. The mailbox cannot be changed without it.
  package let userID: String?
  /// AM's identifier of its record of this device, from AM 8.0.1 on.
  package let resourceID: String?

  /// The minimum key length in bytes: the length of the digest (RFC 7518 §3.2). AM always sends this length.
  private static let shortestSecret = 32

  init(_ parameters: URIParameters) throws(RegistrationURI.ParseError) {
    messageID = try parameters.required("m")
    guard var secret = try parameters.bytes("s") else { throw .missing("s") }
    defer { cleanse(&secret) }
    guard secret.count >= Self.shortestSecret else { throw .weakSecret(bytes: secret.count) }
    self.secret = SecretBytes(copying: secret)
    guard let challenge = try parameters.bytes("c"), !challenge.isEmpty else { throw .missing("c") }
    guard challenge.count <= 1024 else { throw .malformed("c") }
    self.challenge = challenge
    registrationURL = try Self.url("r", parameters)
    authenticationURL = try Self.url("a", parameters)
    cookie = try parameters.text("l")
    guard cookie?.isHeaderText ?? true else { throw .malformed("l") }
    // The vendor's newer libraries call this parameter `d`.
    userID = if let uid = try parameters.text("uid") { uid } else { try parameters.text("d") }
    resourceID = try parameters.text("pid")
  }

  private static func url(_ name: String, _ parameters: URIParameters) throws(RegistrationURI.ParseError) -> String {
    guard let text = try parameters.text(name) else { throw .missing(name) }
    guard let url = plainURL(text) else { throw .malformed(name) }
    return url
  }
}

/// The text with its scheme in lower case (RFC 3986 §3.1), in which alone requests are sent.
/// - Returns: nil unless it is `http[s]://host[:port]/path[?query]`, at most 2048 bytes, without user information,
///   fragment or a character that two parsers could read differently.
private func plainURL(_ text: String) -> String? {
  guard text.utf8.count <= 2048, let scheme = ["https://", "http://"].first(where: text.lowercased().hasPrefix) else {
    return nil
  }
  let rest = text.utf8.dropFirst(scheme.utf8.count)
  let host = rest.prefix { !"/?".utf8.contains($0) }
  let forbidden = Set("\"\\<>^`{}|#".utf8)
  guard !host.isEmpty, host.first != UInt8(ascii: ":"), !host.contains(UInt8(ascii: "@")),
    rest.allSatisfy({ (0x21...0x7E).contains($0) && !forbidden.contains($0) })
  else { return nil }
  return scheme + String(decoding: rest, as: UTF8.self)
}

extension String {
  /// Whether the text is printable ASCII of at most 4096 bytes, which cannot end a header line (RFC 9110 §5.5).
  package var isHeaderText: Bool { utf8.count <= 4096 && utf8.allSatisfy { (0x20...0x7E).contains($0) } }
}
