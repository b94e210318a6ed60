// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import MobileAuth
package import ServerBackends

/// The contents of a push token's QR code: `otpauth://pipush/…`, `pia://pipush/…`, or `edumfa-push://edumfa/…` of
/// eduMFA.
///
/// The type has no description because it contains a one-time credential.
package struct EnrollmentURI: Sendable, Equatable {
  /// The token type, as far as the URI shows it.
  package enum Flavor: Sendable, Equatable {
    /// The type `push` of privacyIDEA, or eduMFA's older type of the same name.
    case push
    /// eduMFA's type `edupush`, which supports elliptic-curve keys.
    case edupush
  }

  package enum ParseError: ReportedError, Equatable {
    case tooLong
    case notAnEnrollment
    /// `pia://container/…` registers a smartphone, which this token does not support.
    case container
    case malformed(String)
    case missing(String)
    case repeated(String)
    case version(String)
    case notHTTPS
    case unknownUnlock(String)
  }

  package let flavor: Flavor
  /// The user's name for the token.
  package let label: String
  package let issuer: String
  /// The server's identifier of the token.
  package let serial: String
  /// `https://host[:port]/path`, not normalized, because signatures cover it as written.
  package let endpoint: String
  let credential: String
  /// How long the enrollment may be attempted from now on.
  package let timeToLive: Duration
  /// False if the administrator disables certificate verification.
  package let verifiesServer: Bool
  /// Nil if pressing the button is sufficient.
  package let unlock: RequiredUnlock?

  private static let longest = 4096
  private static let schemes: [(prefix: String, Flavor)] = [
    ("otpauth://pipush/", .push), ("pia://pipush/", .push), ("edumfa-push://edumfa/", .edupush),
  ]

  /// Parses an enrollment URI.
  /// - Parameter text: the URI, at most 4096 bytes; white space around it is ignored.
  /// - Throws: `ParseError` with the part that is wrong.
  package init(_ text: String) throws(ParseError) {
    let text = text.trimmed
    // First the scheme: a long URI may be for another kind of server.
    let beginning = text.prefix(32).lowercased()
    if beginning.hasPrefix("pia://container") { throw .container }
    guard let (prefix, flavor) = Self.schemes.first(where: { beginning.hasPrefix($0.prefix) }) else {
      throw .notAnEnrollment
    }
    guard text.utf8.count <= Self.longest else { throw .tooLong }
    guard !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "#") }) else {
      throw .malformed("white space, a control character or a fragment")
    }
    let rest = text.utf8.dropFirst(prefix.utf8.count)
    guard let mark = rest.firstIndex(of: UInt8(ascii: "?")) else { throw .missing("url") }
    let parameters = try Self.parameters(rest[rest.index(after: mark)...])
    self.flavor = flavor
    label = try Self.decoded(rest[..<mark], "the label").sanitized
    func required(_ name: String) throws(ParseError) -> String {
      guard let value = parameters[name], !value.isEmpty else { throw .missing(name) }
      return value
    }
    let version = try required("v")
    guard version == "1" else { throw .version(version.sanitized) }
    serial = try required("serial")
    guard serial.utf8.count <= 64, serial.utf8.allSatisfy(\.isSerialByte) else { throw .malformed("serial") }
    credential = try required("enrollment_credential")
    guard credential.utf8.count <= 256, credential.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .malformed("enrollment_credential")
    }
    endpoint = try Self.endpoint(required("url"))
    issuer = (parameters["issuer"] ?? "").sanitized
    let minutes = parameters["ttl"] ?? "10"
    guard let minutes = Int(minutes), (1...525_600).contains(minutes) else { throw .malformed("ttl") }
    timeToLive = .seconds(60 * minutes)
    verifiesServer = parameters["sslverify"] != "0"
    do {
      unlock = try RequiredUnlock.demanded(pin: parameters["pin"], forced: parameters["app_force_unlock"])
    } catch { throw .unknownUnlock(error.name.sanitized) }
  }

  /// The decoded names and values. Repeated names are rejected, because two parsers could use different values.
  private static func parameters(_ query: Substring.UTF8View) throws(ParseError) -> [String: String] {
    var parameters: [String: String] = [:]
    for part in query.split(separator: UInt8(ascii: "&")) {
      let equals = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
      let name = try decoded(part[..<equals], "a parameter's name")
      let value = try decoded(part[equals...].dropFirst(), name.sanitized)
      guard parameters.updateValue(value, forKey: name) == nil else { throw .repeated(name.sanitized) }
    }
    return parameters
  }

  /// Decodes percent-encoded UTF-8. A plus sign is not a space: these are not form fields.
  private static func decoded(_ encoded: Substring.UTF8View, _ what: String) throws(ParseError) -> String {
    guard let text = percentDecoded(encoded) else { throw .malformed(what) }
    return text
  }

  private static func endpoint(_ url: String) throws(ParseError) -> String {
    guard url.lowercased().hasPrefix("https://") else { throw .notHTTPS }
    guard isPlainHTTPS(url) else { throw .malformed("url") }
    return url
  }
}

/// Whether the text is `https://host[:port]/path`, at most 1024 bytes, without user information, query, fragment or a
/// character that two parsers could read differently.
func isPlainHTTPS(_ url: String) -> Bool {
  guard url.utf8.count <= 1024, url.hasPrefix("https://"), !url.contains("@") else { return false }
  let rest = url.utf8.dropFirst("https://".utf8.count)
  guard let first = rest.first, first != UInt8(ascii: "/") else { return false }
  let forbidden = Set("\"\\<>^`{}|?#".utf8)
  return rest.allSatisfy { (0x21...0x7E).contains($0) && !forbidden.contains($0) }
}

extension String {
  fileprivate var trimmed: Substring {
    var text = self[...]
    while text.last?.isWhitespace == true { text.removeLast() }
    while text.first?.isWhitespace == true { text.removeFirst() }
    return text
  }
}

extension UInt8 {
  fileprivate var isSerialByte: Bool {
    switch self {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), 0x30...0x39: true
    default: self == UInt8(ascii: "-") || self == UInt8(ascii: "_") || self == UInt8(ascii: ".")
    }
  }
}

extension EnrollmentURI.ParseError {
  package var category: ErrorCategory { .badData }

  package var description: String {
    switch self {
    case .tooLong: "too long for an enrollment URL"
    case .notAnEnrollment: "not an enrollment URL: otpauth://pipush/…, pia://pipush/… or edumfa-push://edumfa/… is"
    case .container: "this URL registers a phone as a container; ask for the enrollment URL of a push token"
    case .malformed(let what): "the enrollment URL is invalid (\(what)); get a new QR code"
    case .missing(let name): "the enrollment URL has no \(name)"
    case .repeated(let name): "the enrollment URL has \(name) twice"
    case .version(let version): "the enrollment URL is of version \(version); only 1 is known"
    case .notHTTPS: "the token server's address in the enrollment URL is not https (policy push_registration_url)"
    case .unknownUnlock(let what): "the enrollment URL has an unknown app_force_unlock: \(what)"
    }
  }
}
