import Secrets

/// What a QR code gives for push: good for one registration, within a minute or two.
public struct PushRegistrationTicket: Sendable {
  /// Of the registration, to be sent back.
  let messageID: String
  /// 32 bytes or more, shared with the server for as long as the account lives.
  let secret: SecretBytes
  let challenge: [UInt8]
  /// Absolute, http or https; to be used exactly as they are.
  public let registrationURL: String
  public let authenticationURL: String
  /// `name=value`, for the load balancer before AM.
  let cookie: String?
  /// AM's name for the person, from 8.0.1 on; without it no refresh.
  let userID: String?
  /// AM's name for its record of this device, from 8.0.1 on.
  let resourceID: String?

  /// RFC 7518 §3.2: a key as long as the digest at least. AM always sends so many.
  private static let shortestSecret = 32

  init(_ parameters: URIParameters) throws(RegistrationURI.Flaw) {
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
    // The vendor's newer libraries know it by the second name.
    userID = if let uid = try parameters.text("uid") { uid } else { try parameters.text("d") }
    resourceID = try parameters.text("pid")
  }

  private static func url(_ name: String, _ parameters: URIParameters) throws(RegistrationURI.Flaw) -> String {
    guard let url = try parameters.text(name) else { throw .missing(name) }
    guard isPlainURL(url) else { throw .malformed(name) }
    return url
  }
}

/// Whether this is `http[s]://host[:port]/path[?query]` and nothing more: no user, no fragment, nothing that an HTTP
/// library and a person could read differently.
func isPlainURL(_ url: String) -> Bool {
  guard url.utf8.count <= 2048, let scheme = ["https://", "http://"].first(where: url.lowercased().hasPrefix) else {
    return false
  }
  let rest = url.utf8.dropFirst(scheme.utf8.count)
  let host = rest.prefix { !"/?".utf8.contains($0) }
  let forbidden = Set("\"\\<>^`{}|#".utf8)
  return !host.isEmpty && host.first != UInt8(ascii: ":") && !host.contains(UInt8(ascii: "@"))
    && rest.allSatisfy { (0x21...0x7E).contains($0) && !forbidden.contains($0) }
}

extension String {
  /// Printable ASCII: it cannot break out of the line of a header field (RFC 9110 §5.5).
  var isHeaderText: Bool { utf8.count <= 4096 && utf8.allSatisfy { (0x20...0x7E).contains($0) } }
}
