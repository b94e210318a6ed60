// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import Secrets
import Synchronization
import TestAM
import Testing
import Vault

@testable import MobileAuth
@testable import PingAMAdapter

@Suite("Answering", .timeLimit(.minutes(5))) struct AnswerTests {
  private let fixture: PingAMFixture

  init() async throws {
    fixture = try PingAMFixture()
    try await fixture.enrolled(pin: pin("13579"))
  }

  @Test("An approval completes the login", arguments: [false, true]) func approvalCompletesTheLogin(legacy: Bool)
    async throws
  {
    let push = try fixture.deliver(legacy: legacy)
    let server = try fixture.server()
    let verdict = try await server.deliver(try await fixture.answer(server, .hold))
    #expect(verdict.decision == .accept && verdict.receipt.hasPrefix(push.messageID))
    #expect(fixture.am.verify(push) == .isTrue)
    // The cookie of this message, not that of the QR code.
    #expect(push.cookie != "amlbcookie=01" && fixture.requests.withLock { $0.last?.headers["Cookie"] } == push.cookie)
    #expect(fixture.am.strays == 0)
    #expect(try await server.pendingRequests().isEmpty)
  }

  @Test("Goes to the long path of the realm where the QR code names that")
  func goesToTheLongPathOfTheRealmWhereTheQRCodeNamesThat() async throws {
    let fixture = try PingAMFixture(namesRealmInFull: true)
    try await fixture.enrolled()
    let push = try fixture.deliver()
    let server = try fixture.server()
    _ = try await server.deliver(try await fixture.answer(server, .hold))
    #expect(fixture.am.verify(push) == .isTrue)
    let urls = fixture.requests.withLock { $0.map(\.url) }
    #expect(urls.count == 2 && urls.allSatisfy { $0.contains("/am/json/realms/root/realms/alpha/push/sns/message?") })
  }

  @Test(
    "A denial rejects the login, of any kind", arguments: [Gesture.Kind.doublePress, .veryLongHold, .cancelKeys],
    [TestAM.PushType.plain, .challenge, .biometric])
  func denialRejectsTheLoginOfAnyKind(gesture: Gesture.Kind, type: TestAM.PushType) async throws {
    let push = try fixture.deliver(type)
    let server = try fixture.server()
    let verdict = try await server.deliver(try await fixture.answer(server, gesture))
    #expect(verdict.decision != .accept)
    #expect(fixture.am.verify(push, type: type) == .isFalse)
  }

  @Test("With the right number completes the login, with another rejects it, and both are stored")
  func withTheRightNumberCompletesTheLoginWithAnotherRejectsItAndBothAreStored() async throws {
    let server = try fixture.server()
    for isRight in [true, false] {
      let push = try fixture.deliver(.challenge)
      let request = try await server.open(try #require(try await server.pendingRequests().first))
      guard case .choice(let choice) = request.contents.challenge else {
        Issue.record("no number")
        return
      }
      #expect(choice.maxInvalidEntries == 3 && choice.digitCounts == 2...2)
      let right = "\(try #require(push.number))"
      let typed = isRight ? right : try #require(choice.options.first { $0 != right })
      _ = try await server.deliver(try await fixture.answer(server, .enter, choice: typed))
      #expect(fixture.am.verify(push, type: .challenge) == (isRight ? .isTrue : .isFalse))
    }
  }

  @Test("With the PIN where AM requires user verification") func withThePINWhereAMRequiresUserVerification()
    async throws
  {
    let push = try fixture.deliver(.biometric)
    let server = try fixture.server()
    await #expect(throws: TokenServerError.pinIncorrect(FailureCounts(max: 3, previous: 1))) {
      try await fixture.answer(server, .enter, pin: pin("24680"))
    }
    #expect(fixture.am.verify(push) == .waiting)
    _ = try await server.deliver(try await fixture.answer(server, .enter, pin: pin("13579")))
    #expect(fixture.am.verify(push) == .isTrue)
    #expect(try await server.validate().failureCounts == [AccountID("ann"): FailureCounts(max: 3, previous: 1)])
  }

  @Test("Can only be a denial where AM requires user verification and there is no PIN")
  func canOnlyBeADenialWhereAMRequiresUserVerificationAndThereIsNoPIN() async throws {
    let fixture = try PingAMFixture()
    try await fixture.enrolled()
    try await expectOnlyNo(in: fixture, at: try fixture.server(), because: "approval-token pin change")
  }

  @Test("Can only be a denial where no PIN may replace a fingerprint")
  func canOnlyBeADenialWhereNoPINMayReplaceAFingerprint() async throws {
    fixture.takesPIN.withLock { $0 = false }
    try await expectOnlyNo(in: fixture, at: try fixture.server(), because: "pin_for_biometric = false")
  }

  @Test("Can only be a denial where the PIN cannot be typed") func canOnlyBeADenialWhereThePINCannotBeTyped()
    async throws
  {
    try await expectOnlyNo(in: fixture, at: try fixture.server(canType: false), because: "no keypad")
  }

  private func expectOnlyNo(in fixture: PingAMFixture, at server: PingAMServerClient, because why: String) async throws
  {
    let push = try fixture.deliver(.biometric)
    let request = try await server.open(try #require(try await server.pendingRequests().first))
    #expect(request.contents.challenge.obstacle?.contains(why) == true)
    #expect(request.contents.type.hasPrefix("push with user verification, can only be denied: "))
    #expect(request.contents.type.contains(why))
    for gesture in [Gesture.Kind.hold, .enter] {
      let response = request.answered(
        by: Gesture(gesture, held: .seconds(1)), typing: pin("13579"), after: .seconds(1), idempotencyKey: "key")
      #expect(response == nil)
    }
    let verdict = try await server.deliver(try await fixture.answer(server, .doublePress))
    #expect(verdict.decision == .deny(.declined))
    #expect(fixture.am.verify(push, type: .biometric) == .isFalse)
  }

  @Test("That was given up is not asked for again") func thatWasGivenUpIsNotAskedForAgain() async throws {
    _ = try fixture.deliver()
    let server = try fixture.server()
    server.requestDidEnd(try #require(try await server.pendingRequests().first).transaction)
    #expect(try await server.pendingRequests().isEmpty)
  }

  @Test("Is possible with a PIN that was chosen later") func isPossibleWithPINThatWasChosenLater() async throws {
    let fixture = try PingAMFixture()
    var account = try await fixture.enrolled()
    account.pin = PINMetadata(.token, length: 5)
    try fixture.vault.put(account, nil)
    fixture.pinVerifier.hasPIN.withLock { _ = $0.insert(account.id) }
    let push = try #require(fixture.am.send("ann", .biometric))
    try fixture.ingress.accept(push.envelope)
    let server = try fixture.server()
    _ = try await server.deliver(try await fixture.answer(server, .enter, pin: pin("13579")))
    #expect(fixture.am.verify(push) == .isTrue)
  }

  // MARK: Locks

  @Test("Is locked while a policy does not hold, and open again when it does")
  func isLockedWhileAPolicyDoesNotHoldAndOpenAgainWhenItDoes() async throws {
    let fixture = try PingAMFixture()
    try await fixture.enrolled(policies: #"{"deviceTampering": {"score": 0.5}}"#)
    try fixture.ingress.accept(try #require(fixture.am.send("ann")).envelope)
    let server = try fixture.server()
    let pending = try #require(try await server.pendingRequests().first)
    fixture.isTamperedWith.withLock { $0 = true }
    await #expect { try await server.open(pending) } throws: { "\($0)".contains("locked") }
    fixture.isTamperedWith.withLock { $0 = false }
    _ = try await server.open(pending)
  }
}
