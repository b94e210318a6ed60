// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// An enrollment URI: `approvaltoken://activate?server=…&code=…&pin_sha256=…`.
package struct ActivationURI: Sendable, Equatable {
  /// `https://host[:port]`, no path, no trailing slash.
  package var server: String
  package var code: ActivationCode
  /// SPKI pins of the server (see `ServerTrust.pins`); at most 8.
  package var pins: [String]

  package init(server: String, code: ActivationCode, pins: [String]) {
    self.server = server
    self.code = code
    self.pins = pins
  }

  package enum ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    case tooLong, notAnActivationURI, notAFleetURI, missing(String), repeated(String), unknown(String),
      badPercentEncoding
    case badServer(String), badCode, badFleetToken, badPin(String)

    package var description: String {
      switch self {
      case .tooLong: "the activation URI is longer than 2048 bytes"
      case .notAnActivationURI: "not an activation URI: it must begin with approvaltoken://activate?"
      case .notAFleetURI: "not the URI of a fleet token: it must begin with \(FleetURI.prefix)"
      case .missing(let name): "the activation URI lacks \"\(name)\""
      case .repeated(let name): "the activation URI has \"\(name)\" twice"
      case .unknown(let name): "the activation URI has an unknown part \"\(name)\""
      case .badPercentEncoding: "the activation URI has a % that is not followed by two hex digits, or is not UTF-8"
      case .badServer(let server): "\"\(server)\" is not https://HOST[:PORT]"
      case .badCode:
        "the activation code is wrong: 13 or 25 digits whose last one is a check digit; look for a typing error"
      case .badFleetToken: "the fleet token is wrong: 64 hexadecimal digits"
      case .badPin(let pin): "\"\(pin)\" is not a pin: Base64 of 32 bytes"
      }
    }
  }

  package init(parsing text: String) throws(ParseError) {
    guard text.utf8.count <= 2048 else { throw .tooLong }
    guard text.hasPrefix(Self.prefix) else { throw .notAnActivationURI }
    let parts = try URIParts(of: text.dropFirst(Self.prefix.count), credential: "code")
    guard let code = ActivationCode(parts.credential) else { throw .badCode }
    self.init(server: parts.server, code: code, pins: parts.pins)
  }

  private static let prefix = "approvaltoken://activate?"

  package var text: String {
    "\(Self.prefix)\(URIParts(server: server, credential: code.digits, pins: pins).text(credential: "code"))"
  }
}

/// `approvaltoken-fleet://register?server=…&token=…&pin_sha256=…`: with it a device registers before it has a user. The
/// fleet token stays valid for other devices.
package struct FleetURI: Sendable, Equatable {
  package static let scheme = "approvaltoken-fleet"
  package static let prefix = "\(scheme)://register?"

  /// As for `ActivationURI`.
  package var server: String
  /// 64 hexadecimal digits.
  package var token: String
  /// As for `ActivationURI`.
  package var pins: [String]

  package init(server: String, token: String, pins: [String]) {
    self.server = server
    self.token = token
    self.pins = pins
  }

  package init(parsing text: String) throws(ActivationURI.ParseError) {
    guard text.utf8.count <= 2048 else { throw .tooLong }
    guard text.hasPrefix(Self.prefix) else { throw .notAFleetURI }
    let parts = try URIParts(of: text.dropFirst(Self.prefix.count), credential: "token")
    guard parts.credential.utf8.count == 64, parts.credential.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
      throw .badFleetToken
    }
    self.init(server: parts.server, token: parts.credential, pins: parts.pins)
  }

  package var text: String {
    "\(Self.prefix)\(URIParts(server: server, credential: token, pins: pins).text(credential: "token"))"
  }
}

/// What both kinds of URIs have after the question mark.
private struct URIParts {
  let server: String
  let credential: String
  let pins: [String]
}

extension URIParts {
  /// - Parameter credentialName: the name of the credential's part.
  init(of query: Substring, credential credentialName: String) throws(ActivationURI.ParseError) {
    var server: String?
    var credential: String?
    var pins: [String] = []
    for member in query.split(separator: "&", omittingEmptySubsequences: false) {
      let halves = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(halves[0])
      guard let value = percentDecoded((halves.count == 2 ? halves[1] : "").utf8) else { throw .badPercentEncoding }
      switch name {
      case "server":
        guard server == nil else { throw .repeated(name) }
        server = value
      case credentialName:
        guard credential == nil else { throw .repeated(name) }
        credential = value
      case "pin_sha256":
        guard bytes(base64: value)?.count == 32, pins.count < 8 else { throw .badPin(value) }
        pins.append(value)
      default: throw .unknown(name)
      }
    }
    guard let server else { throw .missing("server") }
    guard let credential else { throw .missing(credentialName) }
    guard ActivationURI.isServer(server) else { throw .badServer(server) }
    self.init(server: server, credential: credential, pins: pins)
  }

  func text(credential name: String) -> String {
    "server=\(percentEncoded(server))&\(name)=\(credential)"
      + pins.map { "&pin_sha256=\(percentEncoded($0))" }.joined()
  }
}

extension ActivationURI {
  /// `https://HOST[:PORT]` with a DNS name, an IPv4 address or an IPv6 address in brackets.
  package static func isServer(_ text: String) -> Bool {
    guard text.hasPrefix("https://") else { return false }
    var host = text.dropFirst("https://".count)
    if let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") {
      let digits = host[host.index(after: colon)...].utf8
      guard digits.count <= 5, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
        let port = Int(Substring(digits)), (1...65535).contains(port)
      else { return false }
      host = host[..<colon]
    }
    if host.hasPrefix("["), host.hasSuffix("]") {
      return IPAddressBytes.parse(String(host.dropFirst().dropLast()))?.count == 16
    }
    return !host.isEmpty && host.utf8.count <= 253
      && host.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == ".") }
  }
}

private func percentEncoded(_ text: String) -> String {
  text.utf8.map { byte in
    let character = Character(Unicode.Scalar(byte))
    // The unreserved characters of RFC 3986 §2.3.
    let isUnreserved = character.isASCII && (character.isLetter || character.isNumber || "-._~".contains(character))
    return isUnreserved ? String(character) : "%" + [byte].uppercaseHex
  }.joined()
}
