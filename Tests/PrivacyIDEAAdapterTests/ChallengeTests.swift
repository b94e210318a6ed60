// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import Testing

@testable import PrivacyIDEAAdapter

@Suite("A challenge", .timeLimit(.minutes(5))) struct ChallengeTests {
  static let serverKey = try! RSAPrivateKey(bits: 2048)
  static let serial = "PIPU0001"

  /// An element as a server creates it; `changes` are applied before it is signed.
  static func element(_ changes: [String: String] = [:], capabilities: String? = nil) -> [String: JSONValue] {
    var fields = [
      "nonce": "NONCE234", "url": "https://pi.example/ttype/push", "serial": serial, "question": "Log in?",
      "title": "Example", "sslverify": "1",
    ]
    fields.merge(changes) { $1 }
    var members = fields.mapValues { JSONValue.text($0) }
    let names = ["nonce", "url", "serial", "question", "title", "sslverify", "require_presence"]
    members["signature"] = .text(signature(names.compactMap { fields[$0] }.joined(separator: "|")))
    if let capabilities {
      members["capabilities"] = .text(capabilities)
      members["capabilities_signature"] = .text(
        signature("{\"capabilities\":\(capabilities),\"nonce\":\"\(fields["nonce"]!)\"}"))
    }
    return members
  }

  static func signature(_ text: String) -> String { try! serverKey.signature(for: Array(text.utf8)).base32 }

  private func read(_ members: [String: JSONValue]) throws(PushChallenge.ParseError) -> PushChallenge {
    try PushChallenge(.object(members), for: Self.serial, verifiedWith: Self.serverKey.publicKey)
  }

  @Test(
    "May say anything",
    arguments: [
      "", "a|b", "|", "Größe 日本語 👩‍👩‍👧 e\u{301}", "\u{0}\n\u{2028}", String(repeating: "ü", count: 512),
    ])
  func maySayAnything(text: String) throws {
    let challenge = try read(Self.element(["question": text, "title": String(text.prefix(128))]))
    #expect(challenge.question.unicodeScalars.elementsEqual(text.unicodeScalars))
    // An escaped text is the same text.
    let escaped = text.utf16.map {
      "\\u" + String(repeating: "0", count: 4 - String($0, radix: 16).count) + String($0, radix: 16)
    }
    let parsed = try #require(JSONValue(parsing: Array("\"\(escaped.joined())\"".utf8)))
    var members = Self.element(["question": text])
    members["question"] = parsed
    #expect(throws: Never.self) { try read(members) }
  }

  /// Composed and decomposed letters look the same and compare equal in Swift, but have different signatures.
  @Test("Is verified over code points, not over what looks the same")
  func isVerifiedOverCodePointsNotOverWhatLooksTheSame() {
    var members = Self.element(["question": "e\u{301}"])
    members["question"] = .text("\u{E9}")
    #expect(throws: PushChallenge.ParseError.forged) { try read(members) }
  }

  @Test(
    "Has every field, as text", arguments: ["nonce", "url", "serial", "question", "title", "sslverify", "signature"])
  func hasEveryFieldAsText(name: String) {
    for wrong in [nil, JSONValue.null, .integer(1), .list([.text("x")])] {
      var members = Self.element()
      members[name] = wrong
      #expect(throws: PushChallenge.ParseError.missing(name)) { try read(members) }
    }
  }

  @Test("Is forged if a single letter is another", arguments: ["nonce", "url", "question", "title"])
  func isForgedIfASingleLetterIsAnother(name: String) {
    var members = Self.element()
    members[name] = .text("Log out?")
    #expect(throws: PushChallenge.ParseError.forged) { try read(members) }
  }

  @Test("Of another token, of another server or not signed at all is rejected")
  func ofAnotherTokenOfAnotherServerOrNotSignedAtAllIsRejected() throws {
    #expect(throws: PushChallenge.ParseError.otherToken) { try read(Self.element(["serial": "PIPU0002"])) }
    let other = try RSAPrivateKey(bits: 2048).publicKey
    #expect(throws: PushChallenge.ParseError.forged) {
      try PushChallenge(.object(Self.element()), for: Self.serial, verifiedWith: other)
    }
    for signature in ["", "MY======", Self.signature("x"), Self.signature("x").lowercased()] {
      var members = Self.element()
      members["signature"] = .text(signature)
      #expect(throws: PushChallenge.ParseError.forged) { try read(members) }
    }
    #expect(throws: PushChallenge.ParseError.notAnObject) {
      try PushChallenge(.text("x"), for: Self.serial, verifiedWith: other)
    }
  }

  /// The fields are joined without escapes: one signed text must not be readable in two ways.
  @Test("That requires presence cannot be presented as one that does not")
  func thatRequiresPresenceCannotBePresentedAsOneThatDoesNot() {
    var members = Self.element(["require_presence": "M,H,A"])
    members["require_presence"] = nil
    #expect(throws: PushChallenge.ParseError.forged) { try read(members) }
    members["sslverify"] = .text("1|M,H,A")
    #expect(throws: PushChallenge.ParseError.malformed("sslverify, nonce or url")) { try read(members) }
    members["title"] = .text("Example|1")
    members["sslverify"] = .text("M,H,A")
    #expect(throws: PushChallenge.ParseError.malformed("sslverify, nonce or url")) { try read(members) }
    var plain = Self.element(["title": "Example|1"])
    plain["title"] = .text("Example")
    plain["require_presence"] = .text("1")
    #expect(throws: PushChallenge.ParseError.malformed("require_presence")) { try read(plain) }
    // With a combining mark, the separator is another `Character`, but the same byte.
    for change in [["nonce": "N|\u{301}"], ["url": "https://pi.example/|\u{301}"]] {
      #expect(throws: PushChallenge.ParseError.malformed("sslverify, nonce or url")) { try read(Self.element(change)) }
    }
  }

  @Test(
    "Gives its options in the order sent",
    arguments: [
      ("M,H,A", ["M", "H", "A"]), ("07,42", ["07", "42"]), ("dark blue,Größe,a|b", ["dark blue", "Größe", "a|b"]),
      ("0,1,2,3,4,5,6,7,8,9", ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
    ])
  func givesItsOptionsInTheOrderSent(presence: String, options: [String]) throws {
    #expect(try read(Self.element(["require_presence": presence])).options == options)
  }

  @Test("With unusable options is refused", arguments: ["", "M", "M,", "M,M", ",", "1,2,3,4,5,6,7,8,9,10,11"])
  func withUnusableOptionsIsRefused(presence: String) {
    #expect(throws: PushChallenge.ParseError.malformed("require_presence")) {
      try read(Self.element(["require_presence": presence]))
    }
  }

  @Test(
    "Says whether it accepts reasons",
    arguments: [
      (#"{"decline_reason":true}"#, true), (#"{"decline_reason":false}"#, false), ("{}", false),
      (#"{"decline_reason":"true"}"#, false), (#"{"decline_reason":true,"z":{"values":[1,null,"a\"\\ü"]}}"#, true),
    ])
  func saysWhetherItAcceptsReasons(capabilities: String, takesReasons: Bool) throws {
    var members = Self.element(capabilities: capabilities)
    #expect(try read(members).takesReasons == takesReasons)
    members["capabilities"] = JSONValue(parsing: Array(capabilities.utf8))
    #expect(try read(members).takesReasons == takesReasons)
    members["capabilities_signature"] = .text(Self.signature("x"))
    #expect(throws: PushChallenge.ParseError.forgedCapabilities) { try read(members) }
  }

  @Test("Works without capabilities that are missing or unreadable")
  func worksWithoutCapabilitiesThatAreMissingOrUnreadable() throws {
    #expect(try !read(Self.element()).takesReasons)
    for wrong in ["not JSON", "[]", "7"] {
      #expect(try !read(Self.element(capabilities: wrong)).takesReasons)
    }
    for name in ["capabilities", "capabilities_signature"] {
      var members = Self.element(capabilities: #"{"decline_reason":true}"#)
      members[name] = nil
      #expect(try !read(members).takesReasons)
    }
  }

  /// A signature over one challenge's capabilities is not valid for another.
  @Test("Takes no capabilities of another challenge") func takesNoCapabilitiesOfAnotherChallenge() {
    var members = Self.element()
    let other = Self.element(["nonce": "OTHER234"], capabilities: #"{"decline_reason":true}"#)
    for name in ["capabilities", "capabilities_signature"] { members[name] = other[name] }
    #expect(throws: PushChallenge.ParseError.forgedCapabilities) { try read(members) }
  }

  @Test("Is not endless", arguments: [("question", 4097), ("title", 1025), ("nonce", 129), ("url", 1025)])
  func isNotEndless(name: String, count: Int) {
    #expect(throws: PushChallenge.ParseError.tooLong(name)) {
      try read(Self.element([name: String(repeating: "x", count: count)]))
    }
  }
}
