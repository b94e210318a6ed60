// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues

/// An open challenge whose server signature has been verified.
struct PushChallenge: Sendable, Equatable {
  /// The reason why an element of the list is rejected.
  enum ParseError: Error, Equatable, Sendable {
    case notAnObject
    case missing(String)
    case tooLong(String)
    case otherToken
    case forged
    case forgedCapabilities
    case malformed(String)
  }

  let nonce: String
  /// The URL for the answer, signed by the server.
  let url: String
  let serial: String
  let question: String
  let title: String
  /// The options of a presence challenge, in the order received; nil for other challenges.
  let options: [String]?
  /// Whether the server records the reason for a denial.
  let takesReasons: Bool

  /// Maximum lengths in bytes: 512 characters of question and 128 of title, in any alphabet.
  private static let longest = ["nonce": 128, "url": 1024, "question": 4096, "title": 1024, "require_presence": 4096]

  /// Verifies and parses an element of the list. Members are interpreted only after the signature was verified.
  init(_ element: JSONValue, for serial: String, verifiedWith key: RSAPublicKey) throws(ParseError) {
    guard case .object(let members) = element else { throw .notAnObject }
    func text(_ name: String) throws(ParseError) -> String {
      guard let text = members[name]?.text else { throw .missing(name) }
      guard text.utf8.count <= Self.longest[name, default: 64] else { throw .tooLong(name) }
      return text
    }
    guard try text("serial") == serial else { throw .otherToken }
    self.serial = serial
    nonce = try text("nonce")
    url = try text("url")
    question = try text("question")
    title = try text("title")
    let sslverify = try text("sslverify")
    // Signed fields are joined without escapes. Requiring exactly "0" or "1" here ensures that the end of a presence
    // challenge cannot be presented as part of another field.
    let separator = UInt8(ascii: "|")
    guard ["0", "1"].contains(sslverify), !nonce.isEmpty, !nonce.utf8.contains(separator),
      !url.utf8.contains(separator)
    else {
      throw .malformed("sslverify, nonce or url")
    }
    let presence = members["require_presence"] == nil ? nil : try text("require_presence")
    guard let signature = members["signature"]?.text else { throw .missing("signature") }
    let signed = [nonce, url, serial, question, title, sslverify] + (presence.map { [$0] } ?? [])
    guard key.isValidSignature(onTheWire: signature, for: signed.joined(separator: "|")) else { throw .forged }
    options = try presence.map(Self.options)
    takesReasons = try Self.capabilities(members, nonce, key)?["decline_reason"] == .bool(true)
  }

  private static func options(_ presence: String) throws(ParseError) -> [String] {
    let options = presence.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    guard (2...10).contains(options.count), !options.contains(""), Set(options).count == options.count else {
      throw .malformed("require_presence")
    }
    return options
  }

  /// The server's capabilities, with a verified signature; nil if there are none or their form is unknown.
  private static func capabilities(
    _ members: [String: JSONValue], _ nonce: String, _ key: RSAPublicKey
  ) throws(ParseError) -> JSONValue? {
    guard let signature = members["capabilities_signature"]?.text, let given = members["capabilities"] else {
      return nil
    }
    let read = given.text.map { JSONValue(parsing: Array($0.utf8)) } ?? given
    guard let read, case .object = read else { return nil }
    let signed = JSONValue.object(["capabilities": read, "nonce": .text(nonce)]).canonical
    guard key.isValidSignature(onTheWire: signature, for: signed) else { throw .forgedCapabilities }
    return read
  }
}

extension PushChallenge.ParseError: CustomStringConvertible {
  var description: String {
    switch self {
    case .notAnObject: "it is not an object that can be parsed"
    case .missing(let name): "it has no \(name)"
    case .tooLong(let name): "its \(name) is too long"
    case .otherToken: "it is for another token"
    case .forged: "the token server did not sign it"
    case .forgedCapabilities: "the token server did not sign its capabilities"
    case .malformed(let what): "its \(what) is malformed"
    }
  }
}
