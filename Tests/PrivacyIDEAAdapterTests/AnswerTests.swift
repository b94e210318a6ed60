// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import Secrets
import ServerBackends
import Synchronization
import Testing

@testable import MobileAuth
@testable import PrivacyIDEAAdapter

@Suite("An answer", .timeLimit(.minutes(5))) struct AnswerTests {
  @Test(
    "Is the user's decision, with the reason",
    arguments: [
      (Gesture.Kind.hold, "PIPU0"), (.doublePress, "PIPU0|decline|cancelled"),
      (.veryLongHold, "PIPU0|decline|unknown_trigger"), (.cancelKeys, "PIPU0|decline|cancelled"),
    ])
  func isTheUsersDecisionWithTheReason(gesture: Gesture.Kind, text: String) async throws {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0")
    let verdict = try await fixture.answer(fixture.open(), gesture)
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|\(text)"])
    #expect(verdict.receipt == nonce)
    #expect(try await fixture.token.pendingRequests().isEmpty)
  }

  @Test("Has no reason where none is taken") func hasNoReasonWhereNoneIsTaken() async throws {
    let fixture = try PrivacyIDEAFixture(.eduMFA)
    let nonce = fixture.server.challenge("PIPU0")
    _ = try await fixture.answer(fixture.open(), .veryLongHold)
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0|decline"])
  }

  @Test("Has the texts that the server signed") func hasTheSignedTexts() async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0", presence: "M,H,A", right: "M")
    let request = try await fixture.open()
    let texts = try #require(request.contents.texts)
    #expect(texts.signature == .rsa && texts.type == request.pending.summary.type)
    #expect(texts.message == request.pending.message && texts.pushMessage == nil)
  }

  @Test("Names the option exactly as it came", arguments: ["M", "a|b", "Größe", "5%41"])
  func namesTheOptionExactlyAsItCame(right: String) async throws {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0", presence: "\(right),other", right: right)
    let request = try await fixture.open()
    _ = try await fixture.answer(request, .enter, choice: right)
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0|\(right)"])
  }

  @Test("With two wrong choices is a denial") func withTwoWrongChoicesIsADenial() async throws {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0", presence: "17,42,93", right: "42")
    await #expect(throws: TokenServerError.choiceIncorrect(FailureCounts(max: 2, previous: 1))) {
      try await fixture.answer(fixture.open(), .enter, choice: "17")
    }
    let again = try await fixture.open()
    guard case .choice(let challenge) = again.contents.challenge else {
      Issue.record("no choice")
      return
    }
    #expect(challenge.counts.remaining == 1 && challenge.digitCounts == 2...2)
    await #expect(throws: TokenServerError.answerInvalid("2 wrong choices; the request was denied")) {
      try await fixture.answer(again, .enter, choice: "93")
    }
    #expect(fixture.server.answers(to: nonce).last == "\(nonce)|PIPU0|decline")
    fixture.clock.advance(by: .seconds(2))
    #expect(try await fixture.token.pendingRequests().isEmpty)
  }

  @Test("May return a code for the portal") func mayReturnACodeForThePortal() async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0", code: "07")
    let verdict = try await fixture.answer(fixture.open(), .hold)
    #expect(verdict.code == PortalCode(digits: "07", message: "Enter the code"))
  }

  @Test("That comes too late is no success") func thatComesTooLateIsNoSuccess() async throws {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    fixture.server.end(nonce)
    await #expect(throws: TokenServerError.requestNotFound) { try await fixture.answer(request, .hold) }
  }

  @Test("Whose connection broke before it arrived is simply sent again")
  func whoseConnectionBrokeBeforeItArrivedIsSimplySentAgain() async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    fixture.weather.forecast.withLock { $0 = [.neverArrives] }
    await #expect(throws: TokenServerError.self) { try await fixture.answer(request, .hold) }
    #expect(try await fixture.answer(request, .hold).decision == .accept)
  }

  /// The challenge is listed again after it has ended: the server's response counts, and it is not a success.
  @Test("To a challenge that is replayed later is no success") func toAChallengeThatIsReplayedLaterIsNoSuccess()
    async throws
  {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    fixture.server.end(nonce)
    fixture.clock.advance(by: .seconds(2))
    #expect(try await fixture.token.pendingRequests().isEmpty)
    await #expect(throws: TokenServerError.requestNotFound) { try await fixture.token.open(request.pending) }
    fixture.server.challenge("PIPU0", ["nonce": nonce])
    let again = try await fixture.open()
    fixture.server.end(nonce)
    await #expect(throws: TokenServerError.requestNotFound) { try await fixture.answer(again, .hold) }
  }

  @Test(
    "Has no verdict but the server's own, and is sent until there is one",
    arguments: [
      HTTPResponse(status: 200, body: Array("<html>welcome".utf8)), HTTPResponse(status: 200, body: Array("true".utf8)),
      HTTPResponse(status: 200, body: Array(#"{"result":{"status":true,"value":"true"}}"#.utf8)),
      HTTPResponse(status: 200, body: Array(#"{"result":{"status":false,"value":true}}"#.utf8)),
      HTTPResponse(status: 302, headers: ["Location": "/"]), HTTPResponse(status: 404, body: Array("<html>".utf8)),
      HTTPResponse(status: 502),
    ])
  func hasNoVerdictButTheServersOwnAndIsSentUntilThereIsOne(page: HTTPResponse) async throws {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    fixture.server.state.withLock { $0.failures = [page] }
    let unexplained = TokenServerError.unreachable("status \(page.status) without a known error message")
    await #expect(throws: unexplained) { try await fixture.answer(request, .hold) }
    #expect(try await fixture.answer(request, .hold).decision == .accept)
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0"])
  }

  /// The server refuses a repeated answer, whichever token answered first.
  @Test("Whose own answer was lost is unknown, not denied") func whoseOwnAnswerWasLostIsUnknownNotDenied() async throws
  {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    fixture.weather.forecast.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerError.self) { try await fixture.answer(request, .hold) }
    let unknown = TokenServerError.outcomeUnknown(
      "the connection was lost, and the token server cannot report whether the answer arrived")
    await #expect(throws: unknown) { try await fixture.answer(request, .hold) }
  }

  @Test("Whose own answer was lost is unknown, also if the next attempt is refused", arguments: [403, 404, 400])
  func lostAndThenRefused(status: Int) async throws {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    fixture.weather.forecast.withLock { $0 = [.answerIsLost] }
    await #expect(throws: TokenServerError.self) { try await fixture.answer(request, .hold) }
    fixture.server.state.withLock { $0.failures = [FakePushServer.error(status, 303)] }
    let unknown = await #expect(throws: TokenServerError.self) { try await fixture.answer(request, .hold) }
    guard case .outcomeUnknown? = unknown else {
      Issue.record("\(String(describing: unknown))")
      return
    }
    #expect(fixture.server.answers(to: nonce).count == 1)
  }

  /// The server refuses the repeated answer, and does not say whether it recorded the first: that shows the list.
  @Test("Is sent again until a list shows why it was refused", arguments: [nil, "42"])
  func refusedWithoutAList(right: String?) async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0", presence: right.map { "\($0),17" }, right: right)
    let request = try await fixture.open()
    fixture.weather.forecast.withLock { $0 = [.answerIsLost] }
    func fault() async -> TokenServerError? {
      do {
        _ = try await fixture.answer(request, right == nil ? .hold : .enter, choice: right)
        return nil
      } catch { return error as? TokenServerError }
    }
    #expect(await fault()?.effect == .retry)
    fixture.weather.forecast.withLock { $0 = [.fine, .neverArrives] }
    #expect(await fault()?.effect == .retry)
    fixture.clock.advance(by: .seconds(2))
    let last = await fault()
    guard case .outcomeUnknown? = last else {
      Issue.record("\(String(describing: last))")
      return
    }
  }

  /// eduMFA would still accept an approval after the denial.
  @Test("That declined is final") func thatDeclinedIsFinal() async throws {
    let fixture = try PrivacyIDEAFixture(.eduMFA)
    let nonce = fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    _ = try await fixture.answer(request, .doublePress)
    fixture.server.state.withLock { $0.challenges[0].isOpen = true }
    fixture.clock.advance(by: .seconds(2))
    #expect(try await fixture.token.pendingRequests().isEmpty)
    await #expect(throws: TokenServerError.requestNotFound) { try await fixture.token.open(request.pending) }
    #expect(fixture.server.answers(to: nonce).count == 1)
  }

  @Test(
    "Never goes to an address that is not plain https",
    arguments: [
      "http://pi.example/ttype/push", "https://pi.example/ttype/push?x", "https://me@pi.example/", "file:///etc/passwd",
    ])
  func neverGoesToAnAddressThatIsNotPlainHttps(url: String) async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0", ["url": url])
    await #expect(throws: TokenServerError.notHandleable("its answer would not go to an https address")) {
      try await fixture.open()
    }
  }

  @Test("To another host is named as such") func toAnotherHostIsNamedAsSuch() async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0", ["url": "https://other.example/ttype/push", "title": "VPN"])
    #expect(try await fixture.open().contents.type == "push \"VPN\", to be answered at other.example")
  }

  @Test("Is sent only after the right PIN, where one is required") func isSentOnlyAfterTheRightPINWhereOneIsRequired()
    async throws
  {
    let pinVerifier = ScriptedPINVerifier([.wrong(FailureCounts(max: 3, previous: 1)), .right])
    let fixture = try PrivacyIDEAFixture(wantsPIN: true, pinVerifier: pinVerifier)
    let nonce = fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    #expect(request.contents.challenge == .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    await #expect(throws: TokenServerError.pinIncorrect(FailureCounts(max: 3, previous: 1))) {
      try await fixture.answer(request, .enter, pin: pin("00000"))
    }
    #expect(fixture.server.answers(to: nonce).isEmpty)
    _ = try await fixture.answer(request, .enter, pin: pin("13579"))
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0"])
    #expect(pinVerifier.verified.withLock { $0 } == [pin("00000"), pin("13579")])
  }

  @Test("Needs no PIN to deny, and wipes after the last wrong PIN") func needsNoPINToDenyAndWipesAfterTheLastWrongPIN()
    async throws
  {
    let pinVerifier = ScriptedPINVerifier([.wiped])
    let fixture = try PrivacyIDEAFixture(wantsPIN: true, pinVerifier: pinVerifier)
    let nonce = fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    await #expect(throws: TokenServerError.pinsUsedUp) {
      try await fixture.answer(request, .enter, pin: pin("00000"))
    }
    _ = try await fixture.answer(request, .doublePress)
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0|decline|cancelled"])
  }

  /// As on a board whose keypad was removed.
  @Test("Can only be denied where a PIN is required and the board has no keypad", arguments: [nil, "M,H"])
  func canOnlyBeDeniedWherePINIsRequiredAndTheBoardHasNoKeypad(
    presence: String?
  ) async throws {
    let fixture = try PrivacyIDEAFixture(wantsPIN: true)
    let nonce =
      if let presence { fixture.server.challenge("PIPU0", presence: presence, right: "H") } else {
        fixture.server.challenge("PIPU0")
      }
    let request = try await fixture.open()
    #expect(request.contents.challenge.obstacle?.hasPrefix("a PIN is required") == true)
    #expect(request.contents.type.contains("can only be denied: a PIN is required"))
    for gesture in [Gesture.Kind.hold, .enter] {
      let response = request.answered(
        by: Gesture(gesture, held: .seconds(1)), typing: pin("13579"), choosing: "H", after: .zero, idempotencyKey: "")
      #expect(response == nil)
    }
    _ = try await fixture.answer(request, .doublePress)
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0|decline|cancelled"])
  }

  @Test("Choice and PIN are both required") func choiceAndPINAreBothRequired() async throws {
    let fixture = try PrivacyIDEAFixture(wantsPIN: true, pinVerifier: ScriptedPINVerifier([.right]))
    let nonce = fixture.server.challenge("PIPU0", presence: "M,H", right: "H")
    let request = try await fixture.open()
    #expect(request.answered(by: Gesture(.enter, held: .zero), choosing: "H", after: .zero, idempotencyKey: "") == nil)
    _ = try await fixture.answer(request, .enter, pin: pin("13579"), choice: "H")
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0|H"])
  }
}

final class ScriptedPINVerifier: PINVerifier {
  let verified = Mutex<[PIN]>([])
  private let judgements: Mutex<[PINVerificationResult]>

  init(_ judgements: [PINVerificationResult]) { self.judgements = Mutex(judgements) }

  func counts(of account: AccountID) throws(StateStoreError) -> FailureCounts? { FailureCounts(max: 3, previous: 0) }

  func verify(_ pin: PIN, of account: AccountID) throws(StateStoreError) -> PINVerificationResult {
    verified.withLock { $0.append(pin) }
    return judgements.withLock { $0.removeFirst() }
  }
}
