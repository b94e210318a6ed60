// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import JSONValues
import MobileAuth
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite("What a push message says", .timeLimit(.minutes(5))) struct MessageContentTests {
  private let fixture: PingAMFixture

  init() async throws {
    fixture = try PingAMFixture(.am800)
    try await fixture.enrolled()
  }

  private func mechanism() throws -> Mechanism {
    let record = try #require(try fixture.vault.accounts().first)
    return try #require(try Mechanism(record))
  }

  /// A message signed by ann's AM.
  private func deliver(_ claims: [String: JSONValue], number: UInt8 = 1) throws {
    let mechanism = try mechanism()
    var all = claims
    all["u"] = .text(mechanism.metadata.uid)
    all["c"] = .text([number].base64)
    let envelope: [String: JSONValue] = [
      "messageId": .text("AUTHENTICATE:\(number)"), "message": .text(mechanism.secret.token(all)),
    ]
    try fixture.ingress.accept(Array(JSONValue.object(envelope).canonical.utf8))
  }

  @Test("Is shown and logged: the journey's payload, the login's origin, the time")
  func isShownAndLoggedTheJourneysPayloadTheLoginsOriginTheTime() async throws {
    let payload = #"{ "amount": "12 €", "to": "Bob" }"#
    let context = #"{"remoteIp":"198.51.100.7","userAgent":"Mozilla/5.0"}"#
    let push = try #require(fixture.am.send("ann", .challenge, payload: payload))
    try fixture.ingress.accept(push.envelope)
    let server = try fixture.server()
    let pending = try #require(try await server.pendingRequests().first)
    #expect(pending.summary.payload == payload && pending.summary.origin == context)
    #expect(pending.sentAtMilliseconds == 1_795_253_339_000)
    let parts = [
      "push with a number", "sent at 1795253339000 ms", #"says "Login attempt from ann at Example""#,
      "login from \(context)", "payload \(payload)",
    ]
    #expect(try await server.open(pending).contents.type == parts.joined(separator: ", "))
  }

  @Test("Ends with an ellipsis where it is too long") func endsWithAnEllipsisWhereItIsTooLong() async throws {
    func text(_ length: Int) -> String { String(repeating: "x", count: length) }
    func cut(_ length: Int) -> String { text(length - 1) + "…" }
    try deliver(["m": .text(text(4000)), "x": .text(text(1001)), "p": .text(text(3073))])
    let server = try fixture.server()
    let pending = try #require(try await server.pendingRequests().first)
    #expect(pending.message == text(4000))
    #expect(pending.summary.origin == cut(1000) && pending.summary.payload == cut(3072))
    let type = try await server.open(pending).contents.type
    #expect(type == "push, says \"\(cut(155))\", login from \(cut(150)), payload \(cut(100))")
  }

  /// Fails if a message that AM can deliver is shortened for programs.
  @Test("Is whole, however long it is") func isWhole() async throws {
    let text = String(repeating: "x", count: 11_000)
    try deliver(["m": .text(text)])
    #expect(try await fixture.server().pendingRequests().first?.message == text)
  }

  @Test("Has AM's name of its type, and its numbers only on request") func pushType() async throws {
    for (number, kind) in [nil, "default", "challenge", "biometric", "tomorrow"].enumerated() {
      var claims: [String: JSONValue] = ["m": .text("m"), "n": .text("12,34,56")]
      claims["k"] = kind.map(JSONValue.text)
      try deliver(claims, number: UInt8(number))
    }
    for showsNumbers in [false, true] {
      let server = try fixture.server(showsNumbers: showsNumbers)
      let pending = try await server.pendingRequests()
      #expect(
        pending.map(\.summary.pushType).sorted { ($0 ?? "") < ($1 ?? "") }
          == ["biometric", "challenge", "default", "default", "default"])
      #expect(pending.compactMap(\.summary.numbers) == (showsNumbers ? [[12, 34, 56]] : []))
      for request in pending {
        let texts = try #require(try await server.open(request).contents.texts)
        #expect(texts == VerifiedTexts(signedWith: .hmac, type: request.summary.pushType, message: "m"))
      }
    }
  }

  @Test("Names no user with an empty name") func namesNoUserWithAnEmptyName() throws {
    for (number, (name, known)) in ([("", nil), ("d1", "d1"), ("", "d1")] as [(String, String?)]).enumerated() {
      try deliver(["d": .text(name)], number: UInt8(number))
      #expect(try mechanism().metadata.userID == known)
    }
    #expect(!fixture.events.texts.contains { $0.contains("names the user") })
  }

  @Test("May have blanks in its JSON, as old AM prints it") func mayHaveBlanksInItsJSONAsOldAMPrintsIt() async throws {
    let push = try #require(fixture.am.send("ann", isLegacy: true))
    for part in push.message.split(separator: ".").prefix(2) {
      let json = String(decoding: try #require(bytes(base64URL: String(part))), as: UTF8.self)
      #expect(json.hasPrefix("{ ") && json.contains(" : "))
    }
    try fixture.ingress.accept(push.envelope)
    let server = try fixture.server()
    _ = try await server.deliver(try await fixture.answer(server, .hold))
    #expect(fixture.am.verify(push) == .isTrue)
  }
}
