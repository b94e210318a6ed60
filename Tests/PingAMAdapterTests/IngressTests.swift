// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import JSONValues
import MobileAuth
import Secrets
import ServerBackends
import TestAM
import Testing
import Vault

@testable import PingAMAdapter

@Suite("A push message that is delivered", .timeLimit(.minutes(5))) struct IngressTests {
  private let fixture: PingAMFixture
  private let ann = AccountID("ann")

  init() async throws {
    fixture = try PingAMFixture()
    try await fixture.enrolled()
  }

  private func push(_ type: TestAM.PushType = .plain) throws -> TestAM.Push {
    try #require(fixture.am.send("ann", type))
  }

  private func envelope(_ message: String, id: String = "AUTHENTICATE:1") -> [UInt8] {
    Array(JSONValue.object(["messageId": .text(id), "message": .text(message)]).canonical.utf8)
  }

  /// A message with any contents, signed by ann's AM.
  private func signed(_ claims: [String: JSONValue]) throws -> String {
    let record = try #require(try fixture.vault.accounts().first)
    let mechanism = try #require(try Mechanism(record))
    var all: [String: JSONValue] = [
      "u": .text(mechanism.metadata.uid), "c": .text([UInt8](repeating: 1, count: 32).base64), "t": .text("60"),
    ]
    for (name, value) in claims { all[name] = value }
    return mechanism.secret.token(all.filter { $0.value != .null })
  }

  @Test("Is there after a restart, in whichever form it came") func isThereAfterARestartInWhicheverFormItCame()
    async throws
  {
    #expect(try fixture.ingress.accept(try push().envelope) == .stored(ann))
    fixture.clock.advance(by: .seconds(1))
    #expect(try fixture.ingress.accept(fixture.am.amazonForm(of: try push(.challenge))) == .stored(ann))
    let requests = try await fixture.server().pendingRequests()
    #expect(requests.map(\.summary.type) == ["push with a number", "push"])
    #expect(requests[0].message == "Login attempt from ann at Example")
    #expect(requests[0].summary.origin?.contains("198.51.100.7") == true)
    #expect(requests[0].summary.payload == "{  }" && requests[0].sentAtMilliseconds == 1_795_253_340_000)
  }

  /// Each message is a write to the storage: AM, or an owner of the secret, could wear it out.
  @Test("Is dropped if its account had too many, but not those of a later login") func tooMany() throws {
    for number in 0..<PushIngress.mostAtOnce {
      let challenge = [UInt8](repeating: 0, count: 30) + [UInt8(number / 256), UInt8(number % 256)]
      let message = try signed(["c": .text(challenge.base64)])
      #expect(try fixture.ingress.accept(envelope(message, id: "AUTHENTICATE:\(number)")) == .stored(ann))
    }
    let next = try push().envelope
    #expect(throws: PushIngress.IngressError.tooMany(ann)) { try fixture.ingress.accept(next) }
    fixture.clock.advance(by: PushIngress.interval)
    #expect(try fixture.ingress.accept(next) == .stored(ann))
    #expect(throws: PushIngress.IngressError.tooMany(ann)) { try fixture.ingress.accept(push().envelope) }
    fixture.clock.advance(by: .seconds(1800))
    #expect(try fixture.ingress.accept(push().envelope) == .stored(ann))
  }

  /// Fails if who can publish at the broker can keep messages of AM from the token.
  @Test("Again and again, does not use up what its account may have") func replays() throws {
    let (captured, other) = (try push(), try push())
    #expect(try fixture.ingress.accept(captured.envelope) == .stored(ann))
    for _ in 0..<PushIngress.mostAtOnce {
      #expect(try fixture.ingress.accept(captured.envelope) == .known(ann))
      // Another message under an ID that is already stored.
      #expect(try fixture.ingress.accept(envelope(other.message, id: captured.messageID)) == .known(ann))
    }
    #expect(try fixture.ingress.accept(try push().envelope) == .stored(ann))
  }

  @Test("Twice, or under another id, is shown to the user once") func twiceOrUnderAnotherIdIsShownToTheUserOnce()
    async throws
  {
    let push = try push()
    #expect(try fixture.ingress.accept(push.envelope) == .stored(ann))
    #expect(try fixture.ingress.accept(push.envelope) == .known(ann))
    #expect(try fixture.ingress.accept(envelope(push.message, id: "AUTHENTICATE:other")) == .known(ann))
    // Another message with an ID that is already stored.
    #expect(try fixture.ingress.accept(envelope(try self.push().message, id: push.messageID)) == .known(ann))
    #expect(try await fixture.server().pendingRequests().count == 1)
  }

  @Test("After it was answered, is known") func afterItWasAnsweredIsKnown() async throws {
    let push = try push()
    try fixture.ingress.accept(push.envelope)
    let server = try fixture.server()
    _ = try await server.deliver(try await fixture.answer(server, .hold))
    #expect(try fixture.ingress.accept(push.envelope) == .known(ann))
    #expect(try await server.pendingRequests().isEmpty)
  }

  @Test("For an unknown account, or not authentic, is dropped and counted")
  func forAnUnknownAccountOrNotAuthenticIsDroppedAndCounted() async throws {
    let push = try push()
    let other = SharedSecret(bytes: SecretBytes(copying: [UInt8](repeating: 9, count: 32)))
    let uid = try #require(fixture.am.profiles.first?.mechanismUID)
    let cases: [([UInt8], PushIngress.IngressError)] = [
      (envelope(Vectors.one("push-messages", "own-push-default")["message"]!.text!), .unknownMechanism),
      (envelope(Vectors.one("refused-messages", "own-push-unknown")["message"]!.text!), .unknownMechanism),
      (envelope(push.message.dropLast() + (push.message.last == "A" ? "B" : "A")), .forged("")),
      (envelope(other.token(["u": .text(uid)])), .forged("")),
      (envelope("a.b"), .forged("")),
      (envelope(Vectors.one("refused-messages", "own-push-none")["message"]!.text!), .forged("")),
      (envelope(try signed(["u": .null])), .forged("")), (Array("{}".utf8), .malformed("no messageId")),
      ([UInt8](repeating: 0x20, count: 16_385), .tooLarge),
    ]
    for (bytes, refusal) in cases {
      #expect(
        performing: { try fixture.ingress.accept(bytes) },
        throws: { error in
          if case PushIngress.IngressError.forged = error, case .forged = refusal { return true }
          return error as? PushIngress.IngressError == refusal
        })
    }
    #expect(fixture.events.texts.filter { $0.hasPrefix("dropped: ") }.count == cases.count)
    #expect(try await fixture.server().pendingRequests().isEmpty)
    #expect(try fixture.ingress.accept(push.envelope) == .stored(ann))
  }

  @Test(
    "That is signed but makes no sense is refused",
    arguments: [
      (["c": .null], "no c"), (["c": .text("!")], "c"), (["c": .text("")], "c"), (["t": .text("soon")], "t"),
      (["t": .text("0")], "t"), (["t": .text("86401")], "t"), (["t": .text("-1")], "t"), (["i": .text("now")], "i"),
      (["i": .text("-1")], "i"), (["l": .text("YQ0K")], "l"), (["l": .text("*")], "l"),
      (["k": .text("challenge")], "n"), (["k": .text("challenge"), "n": .text("17,x,86")], "n"),
      (["k": .text("Challenge"), "n": .text("17,17")], "n"), (["k": .text("challenge"), "n": .text("17")], "n"),
      (["k": .text("challenge"), "n": .text("17,42,")], "n"), (["k": .text("challenge"), "n": .text("5,42")], "n"),
      (["k": .text("challenge"), "n": .text("-1,42")], "n"),
    ] as [([String: JSONValue], String)])
  func thatIsSignedButMakesNoSenseIsRefused(claims: [String: JSONValue], what: String) throws {
    let parseError = what == "no c" ? "it has no c" : "its \(what) is malformed"
    #expect(throws: PushIngress.IngressError.notHandleable(parseError)) {
      try fixture.ingress.accept(envelope(try signed(claims)))
    }
  }

  @Test(
    "Has defaults for what is missing",
    arguments: [
      ([:], PushMessage.Kind.confirmation, 60), (["t": .null], .confirmation, 120),
      (["t": .integer(5)], .confirmation, 5),
      (["t": .text("86400")], .confirmation, 86_400), (["k": .text("BIOMETRIC")], .biometric, 60),
      (["k": .text("default")], .confirmation, 60), (["k": .text("palm")], .confirmation, 60),
      (["k": .text("challenge"), "n": .text("10,99")], .number([10, 99]), 60),
      (["n": .text("10,99")], .confirmation, 60), (["l": .text("YT1i")], .confirmation, 60),
    ] as [([String: JSONValue], PushMessage.Kind, Int64)])
  func hasDefaultsForWhatIsMissing(claims: [String: JSONValue], kind: PushMessage.Kind, life: Int64) throws {
    let record = try #require(try fixture.vault.accounts().first)
    let mechanism = try #require(try Mechanism(record))
    let message = try PushMessage(try PushMessage.token(try signed(claims)), verifiedWith: mechanism.secret)
    #expect(message.kind == kind && message.timeToLive == life)
    #expect(message.unknownKind == (claims["k"] == .text("palm") ? "palm" : nil))
  }

  @Test("Names the user where the registration did not, and never another")
  func namesTheUserWhereTheRegistrationDidNotAndNeverAnother() async throws {
    let fixture = try PingAMFixture(.am800)
    try await fixture.enrolled()
    func named() throws -> String? {
      try fixture.vault.accounts().first.flatMap { try Mechanism($0) }?.metadata.userID
    }
    #expect(try named() == nil)
    let record = try #require(try fixture.vault.accounts().first)
    let mechanism = try #require(try Mechanism(record))
    for (number, name) in ["d1", "d2"].enumerated() {
      let claims: [String: JSONValue] = [
        "u": .text(mechanism.metadata.uid), "c": .text([UInt8(number)].base64), "d": .text(name),
      ]
      try fixture.ingress.accept(envelope(mechanism.secret.token(claims), id: "AUTHENTICATE:\(number)"))
      #expect(try named() == "d1")
      // Only the changed user name is reported.
      #expect(fixture.events.texts.filter { $0.contains("names the user") }.count == number)
    }
    #expect(fixture.events.texts.contains { $0.contains("a push message names the user d2") })
  }

  /// A board without a clock chip, and boards with a wrong clock.
  @Test(
    "Is valid for its lifetime from its arrival, independent of the board's clock",
    arguments: [0, 1_795_253_339_000 + 3_600_000, 1_795_253_339_000 - 3_600_000])
  func isValidForItsLifetimeFromItsArrivalIndependentOfTheBoardsClock(clock: Int64) async throws {
    let fixture = try PingAMFixture(wallClockMilliseconds: clock)
    try await fixture.enrolled()
    try fixture.ingress.accept(try #require(fixture.am.send("ann", timeout: 100)).envelope)
    #expect(fixture.events.texts.contains { $0.contains("min apart") })
    let server = try fixture.server()
    #expect(try await server.pendingRequests().map(\.deadline) == [fixture.clock.now + .seconds(100)])
    fixture.clock.advance(by: .seconds(99))
    #expect(try await server.pendingRequests().count == 1)
    fixture.clock.advance(by: .seconds(1))
    #expect(try await server.pendingRequests().isEmpty)
    #expect(try fixture.vault.pendingMessages().isEmpty)
  }

  @Test("Is no longer good after a restart than before") func isNoLongerGoodAfterARestartThanBefore() async throws {
    try fixture.ingress.accept(try #require(fixture.am.send("ann", timeout: 100)).envelope)
    fixture.clock.advance(by: .seconds(60))
    #expect(try await fixture.server().pendingRequests().map(\.deadline) == [fixture.clock.now + .seconds(40)])
    fixture.clock.advance(by: .seconds(40))
    #expect(try await fixture.server().pendingRequests().isEmpty)
  }

  @Test("Gives way when very many come") func givesWayWhenVeryManyCome() async throws {
    for number in 0..<PushMessageLimits.perAccount + 3 {
      let claims: [String: JSONValue] = ["c": .text([UInt8(number)].base64)]
      #expect(try fixture.ingress.accept(envelope(try signed(claims), id: "AUTHENTICATE:\(number)")) == .stored(ann))
    }
    let kept = try fixture.vault.pendingMessages()
    #expect(kept.map(\.reference) == (3..<PushMessageLimits.perAccount + 3).map { "AUTHENTICATE:\($0)" })
  }

  @Test("Is delivered again only where it could not be stored") func isDeliveredAgainOnlyWhereItCouldNotBeStored()
    async throws
  {
    #expect(fixture.ingress.isFinal(try push().envelope))
    #expect(fixture.ingress.isFinal(Array("{}".utf8)))
    let broken = PushIngress(registry: fixture.vault, messageStore: FullMessageStore(), in: fixture.environment)
    #expect(!broken.isFinal(try push().envelope))
    let another = try push().envelope
    // Also after more attempts than an account may have messages at once: none of them was stored.
    for _ in 0...PushIngress.mostAtOnce {
      #expect(throws: PushIngress.IngressError.notStored(.io(call: "write", reason: "disk full"))) {
        try broken.accept(another)
      }
    }
  }

  private func mailbox() throws -> String {
    let account = try #require(try fixture.vault.accounts().first)
    return try #require(account.delivery?.mailbox)
  }

  @Test("Is missed when the channel is down, and that is said") func isMissedWhenTheChannelIsDownAndThatIsSaid()
    async throws
  {
    let mailbox = try mailbox()
    var hints = try fixture.server().hints().makeAsyncIterator()
    #expect(try await hints.next() == .connected)
    fixture.ingress.set(channelFault: "no broker", of: "another's mailbox")
    #expect(try await hints.next() == .pendingChanged)
    fixture.ingress.set(channelFault: "no broker", of: mailbox)
    #expect(try await hints.next() == .disconnected("messages cannot be delivered: no broker"))
    // Messages still arrive through the control socket.
    try fixture.ingress.accept(try push().envelope)
    #expect(try await hints.next() == .pendingChanged)
    fixture.ingress.set(channelFault: nil, of: mailbox)
    #expect(try await hints.next() == .connected)
  }

  @Test("That is stored is found although the channel is down from the start")
  func thatIsStoredIsFoundAlthoughTheChannelIsDownFromTheStart() async throws {
    let mailbox = try mailbox()
    fixture.ingress.set(channelFault: "no broker", of: mailbox)
    var hints = try fixture.server().hints().makeAsyncIterator()
    #expect(try await hints.next() == .pendingChanged)
    fixture.ingress.set(channelFault: nil, of: mailbox)
    #expect(try await hints.next() == .connected)
  }

  @Test("Wakes waiting tasks") func wakesWaitingTasks() async throws {
    var hints = try fixture.server().hints().makeAsyncIterator()
    #expect(try await hints.next() == .connected)
    try fixture.ingress.accept(try push().envelope)
    #expect(try await hints.next() == .pendingChanged)
  }
}

/// A message store without free space.
private struct FullMessageStore: PushMessageStore {
  func store(_ message: DeliveredMessage, whenReadable: () -> Void) throws(StateStoreError) -> Bool {
    whenReadable()
    throw .io(call: "write", reason: "disk full")
  }
  func message(_ transaction: TransactionID) -> DeliveredMessage? { nil }
  func pendingMessages() -> [DeliveredMessage] { [] }
  func end(_ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?) {}
}
