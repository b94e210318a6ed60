// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import Secrets
import Testing

@testable import ReferenceProtocol

/// Malformed messages from any sender.
@Suite(.timeLimit(.minutes(5))) struct HostileJSONTests {
  private func parseError(_ text: String, numbers: ClosedRange<Int64>? = nil) -> JSONSyntax.ParseError? {
    do {
      _ = try JSONSyntax.parse(Array(text.utf8), numbers: numbers)
      return nil
    } catch { return error }
  }

  @Test(
    "What is JSON",
    arguments: [
      "{}", "[]", "null", " true ", "\"\"", "-0", "0", "10.5e-3", #"{"a":[1,{"b":"\u00e9\ud83d\ude00\n"}],"c":null}"#,
      #"["\"\\\/\b\f\n\r\t"]"#,
    ])
  func whatIsJSON(text: String) { #expect(parseError(text) == nil) }

  @Test(
    "What is not",
    arguments: [
      "", " ", "{", "}", "[", "]", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "'a'", "01", "-", "1.", ".5",
      "1e",
      "+1", "tru", "nul", "\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\\ud800\"", "1 2", "{} {}",
      "\"\u{01}\"",
      "NaN", "Infinity", "\u{FEFF}{}",
    ])
  func whatIsNot(text: String) { #expect(parseError(text) == .notJSON) }

  /// Fails if such bytes are replaced, with which different names would be the same.
  @Test(
    "What is not UTF-8",
    arguments: [[0xFF], [0x80], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]])
  func notUTF8(bytes: [UInt8]) {
    for text in [[0x22] + bytes + [0x22], [0x7B, 0x22] + bytes + [0x22, 0x3A, 0x31, 0x7D], bytes] {
      #expect(throws: JSONSyntax.ParseError.notJSON) { try JSONSyntax.parse(text) }
    }
  }

  @Test("At most 100,000 values") func values() {
    func zeros(_ count: Int) -> String { "[" + String(repeating: "0,", count: count - 1) + "0]" }
    #expect(parseError(zeros(99_999)) == nil)
    #expect(parseError(zeros(100_000)) == .tooManyValues)
  }

  @Test("A repeated member is refused, also with an escaped name")
  func repeatedMembers() {
    #expect(parseError(#"{"a":1,"a":1}"#) == .repeated("a"))
    #expect(parseError(#"{"a":1,"\u0061":2}"#) == .repeated("a"))
    #expect(parseError(#"{"x":{"a":1,"b":2,"a":3}}"#) == .repeated("a"))
    #expect(parseError(#"[{"a":1},{"a":1}]"#) == nil)
    #expect(throws: WireError.self) {
      try JSON.decode(Denial.self, from: Array(#"{"reason":"declined","reason":"not_me"}"#.utf8))
    }
    #expect(JSONValue(parsing: Array(#"{"a":1,"a":2}"#.utf8)) == nil)
  }

  /// Fails if a text whose comparison takes seconds is decoded.
  @Test("A character has at most 30 combining marks, in names and in values, however they are written")
  func combiningMarks() {
    func marks(_ count: Int) -> String { "a" + String(repeating: "\u{301}", count: count) }
    #expect(parseError(#"{"\#(marks(30))":"\#(marks(30))"}"#) == nil)
    for text in [
      #"{"\#(marks(31))":1}"#, #"["\#(marks(31))"]"#, #"["a\#(String(repeating: #"\u0301"#, count: 31))"]"#,
      #"["\#(String(repeating: "\u{301}", count: 500_000) + String(repeating: "\u{316}", count: 500_000))"]"#,
    ] {
      #expect(parseError(text) == .tooManyMarks)
      #expect(JSONValue(parsing: Array(text.utf8)) == nil)
    }
  }

  @Test("At most 32 levels")
  func depth() {
    func nested(_ levels: Int) -> String {
      String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }
    #expect(parseError(nested(32)) == nil)
    #expect(parseError(nested(33)) == .tooDeep)
    #expect(parseError(String(repeating: "{\"a\":", count: 33)) == .tooDeep)
    #expect(JSONValue(parsing: Array(nested(33).utf8)) == nil)
  }

  @Test(
    "A number that is too large for a Double is refused", arguments: ["1e309", "[-40029E093997]"])
  func tooLarge(text: String) {
    #expect(parseError(text) == .number)
    #expect(JSONValue(parsing: Array(text.utf8)) == nil)
  }

  @Test(
    "Times and counts are integers, and times are in the years 1970 to 9999",
    arguments: ["-1", "0.5", "1e3", "253402300800000", "9223372036854775807", "-9223372036854775808", "1e400"])
  func numbersOutOfRange(number: String) {
    for text in [
      #"{"state":"open","expires_in_ms":\#(number)}"#, #"{"state":"open","new":[\#(number)]}"#,
    ] {
      #expect(throws: WireError.self) { try JSON.decode(RequestStatus.self, from: Array(text.utf8)) }
    }
  }

  @Test("An entry of the pending list with a time out of range does not affect the others")
  func oneWrongEntry() throws {
    func entry(_ id: String, _ time: String) -> String {
      #"{"transaction_id":"\#(id)","profile_id":"P","sent_at_ms":1,"time_to_live_ms":\#(time),"expires_in_ms":1}"#
    }
    let entries = [
      entry("a", "1"), entry("b", "-9223372036854775808"), entry("c", "9223372036854775807"), entry("d", "2"),
    ]
    let text = #"{"server_time_ms":1,"requests":[\#(entries.joined(separator: ","))]}"#
    let list = try JSON.decode(PendingList.self, from: Array(text.utf8))
    #expect(list.requests.map(\.transactionID) == ["a", "d"])
  }
}

/// Assertions whose times were chosen to overflow.
@Suite(.timeLimit(.minutes(5))) struct HostileAssertionTests {
  private static let times = ["-9223372036854775808", "9223372036854775807", "-1", "0", "253402300799", "253402300800"]

  @Test("A client assertion with extreme times is refused without a trap")
  func clientAssertions() throws {
    let key = try P256PrivateKey()
    for iat in Self.times {
      for exp in Self.times {
        let claims = #"{"iss":"C","sub":"C","aud":"https://h","jti":"j","iat":\#(iat),"exp":\#(exp)}"#
        let assertion = try JWS.sign(
          header: Array(#"{"alg":"ES256","typ":"JWT"}"#.utf8), payload: Array(claims.utf8), key: key)
        for now in [Int64(1_795_000_000), .min, .max] {
          #expect(throws: ClientAssertion.VerificationError.self) {
            try ClientAssertion.verify(assertion, clientID: "C", audience: "https://h", now: now, key: key.publicKey)
          }
        }
      }
    }
  }

  @Test("A knowledge assertion with extreme times is refused without a trap")
  func knowledgeAssertions() throws {
    for iat in Self.times {
      for exp in Self.times {
        let claims = #"{"iss":"C","sub":"P","aud":"https://h","jti":"j","iat":\#(iat),"exp":\#(exp)}"#
        let parts = [#"{"alg":"EdDSA"}"#, claims].map { Array($0.utf8).base64URL }
        let text = (parts + [[UInt8](repeating: 0, count: 64).base64URL]).joined(separator: ".")
        for now in [Int64(1_795_000_000), .min, .max] {
          #expect(throws: KnowledgeAssertion.VerificationError.self) {
            try KnowledgeAssertion(
              parsing: text, clientID: "C", profileID: "P", audience: "https://h", now: now)
          }
        }
      }
    }
  }

  @Test("Lifetimes") func lifetimes() {
    #expect(AssertionLifetime(iat: 1000, exp: 1600)?.isCurrent(at: 1600) == true)
    #expect(AssertionLifetime(iat: 1000, exp: 1060)?.isCurrent(at: 1601) == false)
    #expect(AssertionLifetime(iat: 1000, exp: 1000)?.isCurrent(at: 400) == true)
    #expect(AssertionLifetime(iat: 1000, exp: 1000)?.isCurrent(at: 399) == false)
    #expect(AssertionLifetime(iat: 1000, exp: 999) == nil && AssertionLifetime(iat: 0, exp: 601) == nil)
  }
}
