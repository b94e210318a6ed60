// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import MobileAuth
package import ServerBackends

/// The contents of a QR code: AM's `pushauth://push/…`, `mfauth://totp/…` or `mfauth://hotp/…`, or the
/// `otpauth://totp/…` or `otpauth://hotp/…` of any OATH server.
///
/// The type has no description because it contains the account's secrets.
package struct RegistrationURI: Sendable {
  package enum ParseError: ReportedError, Equatable {
    case tooLong
    case notARegistration
    case malformed(String)
    case missing(String)
    case repeated(String)
    case version(String)
    case weakSecret(bytes: Int)
    case nameless
    case notHTTPS
    /// The secret has a second part, which the device generates and the user types at the site.
    case twoStep
    case unknownUnlock(String)
  }

  package let issuer: String
  package let accountName: String
  /// Nil for `otpauth`.
  package let push: PushRegistrationTicket?
  /// Nil for `pushauth`.
  package let oath: OATHCredential?
  /// Nil if the codes need no PIN, and for the other schemes than `otpauth`.
  package let unlock: RequiredUnlock?
  /// The policies that must hold before the account can be used, as JSON text.
  package let policies: String?
  /// The background color for displaying the account, such as `#032b75`.
  package let backgroundColor: String?
  /// The URL of a logo.
  package let image: String?

  private enum Scheme: String { case pushauth, mfauth, otpauth }

  private static let longest = 8192

  /// Whether the text has the scheme and host of a registration URI.
  package static func recognizes(_ text: String) -> Bool { (try? parts(of: text.trimmed)) != nil }

  /// Whether the text has the scheme and host of a URI for one-time passwords only, which registers nothing.
  package static func isForOneTimePasswordsOnly(_ text: String) -> Bool {
    (try? parts(of: text.trimmed))?.0 == .otpauth
  }

  /// Parses a registration URI.
  /// - Parameter text: the URI, at most 8192 bytes; white space around it is ignored.
  /// - Throws: `ParseError` with the part that is wrong.
  package init(_ text: String) throws(ParseError) {
    let text = text.trimmed
    guard text.utf8.count <= Self.longest else { throw .tooLong }
    let (scheme, oathHost, rest) = try Self.parts(of: text)
    guard rest.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .malformed("white space or a character that is not ASCII")
    }
    // AM does not escape "?" in a name. The rest of such a name cannot be recovered.
    let mark = rest.firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
    let parameters = try URIParameters(rest[mark...].dropFirst())
    if let version = parameters["version"], version != "1" { throw .version(version.sanitized) }
    let namedIssuer = scheme == .otpauth ? parameters["issuer"] : try parameters.text("issuer")
    let (issuer, account) = try Self.names(in: rest[..<mark], issuer: namedIssuer)
    self.issuer = issuer
    accountName = account
    push = scheme == .otpauth ? nil : try PushRegistrationTicket(parameters)
    oath =
      if let oathHost { try OATHCredential(oathHost, parameters, issuer: issuer, accountName: account) } else { nil }
    do {
      unlock =
        scheme == .otpauth
        ? try RequiredUnlock.demanded(pin: parameters["pin"], forced: parameters["app_force_unlock"]) : nil
    } catch { throw .unknownUnlock(error.name.sanitized) }
    policies = try parameters.text("policies")
    backgroundColor = try Self.color(parameters["b"])
    image = scheme == .pushauth ? try parameters.text("image") : parameters["image"]
  }

  /// Splits the URI into scheme, OATH host and the part after the host.
  private static func parts(
    of text: Substring
  ) throws(ParseError) -> (Scheme, OATHHost?, Substring.UTF8View) {
    guard let end = text.range(of: "://") else { throw .notARegistration }
    let rest = text[end.upperBound...]
    let hostEnd = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let host = rest[..<hostEnd].lowercased()
    guard let scheme = Scheme(rawValue: text[..<end.lowerBound].lowercased()) else { throw .notARegistration }
    let oathHost = OATHHost(rawValue: host)
    guard scheme == .pushauth ? host == "push" : oathHost != nil else { throw .notARegistration }
    return (scheme, scheme == .pushauth ? nil : oathHost, rest[hostEnd...].utf8)
  }

  /// Splits the path into issuer and account. AM does not escape ":" in either, and up to 7.2 AM wrote "forgerock" into
  /// the path in place of the issuer.
  private static func names(
    in path: Substring.UTF8View, issuer namedIssuer: String?
  ) throws(ParseError) -> (issuer: String, account: String) {
    let path = path.first == UInt8(ascii: "/") ? path.dropFirst() : path[...]
    guard let decoded = percentDecoded(path) else { throw .malformed("the name") }
    var (issuer, account) = (decoded, decoded)
    if let namedIssuer, decoded.hasPrefix("\(namedIssuer):") {
      account = String(decoded.dropFirst(namedIssuer.count + 1))
    } else if let colon = path.firstIndex(of: UInt8(ascii: ":")) {
      guard let first = percentDecoded(path[..<colon]), let second = percentDecoded(path[colon...].dropFirst()) else {
        throw .malformed("the name")
      }
      (issuer, account) = (first, second)
    }
    if let namedIssuer { issuer = namedIssuer }
    issuer = String(issuer.trimmed)
    account = String(account.trimmed)
    guard !issuer.isEmpty || !account.isEmpty else { throw .nameless }
    guard !issuer.hasControlCharacters, !account.hasControlCharacters else {
      throw .malformed("a control character in the name")
    }
    return (issuer, account.isEmpty ? "Untitled" : account)
  }

  private static func color(_ text: String?) throws(ParseError) -> String? {
    guard let text else { return nil }
    guard (3...8).contains(text.utf8.count), text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
      throw .malformed("b")
    }
    return "#\(text)"
  }
}

extension String {
  fileprivate var trimmed: Substring { self[...].trimmed }
}

extension Substring {
  fileprivate var trimmed: Substring {
    var text = self
    while text.last?.isWhitespace == true { text.removeLast() }
    while text.first?.isWhitespace == true { text.removeFirst() }
    return text
  }

  fileprivate func range(of separator: String) -> Range<Index>? { firstRange(of: separator) }
}

extension RegistrationURI.ParseError {
  package var category: ErrorCategory { .badData }

  package var description: String {
    switch self {
    case .tooLong: "too long for a registration URI"
    case .notARegistration:
      "not a registration URI: pushauth://push/…, mfauth://totp/…, mfauth://hotp/…, otpauth://totp/… or "
        + "otpauth://hotp/… is"
    case .malformed(let what): "the registration URI is invalid (\(what)); get a new QR code"
    case .missing(let name): "the registration URI lacks the parameter \"\(name)\": copy it whole"
    case .repeated(let name): "the registration URI has \(name) twice"
    case .version(let version): "the registration URI is of version \(version); only 1 is known"
    case .weakSecret(let bytes): "the registration URI's secret has \(bytes) bytes; at least 32 are required"
    case .nameless: "the registration URI names neither issuer nor account"
    case .notHTTPS: "AM's URLs in the registration URI are not https; correct the base URL in AM's configuration"
    case .twoStep:
      "the site wants a second part of the secret from the phone (two-step enrollment), which is not supported"
    case .unknownUnlock(let what): "the registration URI has an unknown app_force_unlock: \(what)"
    }
  }
}
