// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Secrets
import Testing

@testable import MobileAuth

/// What programs that follow the token are notified of while requests are handled.
@Suite("Steps of a request", .timeLimit(.minutes(5))) struct StepTests {
  private typealias Event = AuthenticationStep.Event

  private let fixture = HandlerFixture()
  private let pin = PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 1))

  private var steps: [AuthenticationStep] {
    fixture.events.all.compactMap { if case .step(let step) = $0 { step } else { nil } }
  }

  /// The steps of the request 1, with the authenticator of each.
  private func expect(_ wanted: [(Event, String?)], sourceLocation: SourceLocation = #_sourceLocation) {
    let account = AccountID("A")
    let wanted = wanted.map {
      AuthenticationStep($0.0, of: account, HandlerFixture.transaction(1), authenticator: $0.1)
    }
    #expect(steps == wanted, sourceLocation: sourceLocation)
  }

  private func challenge(_ kind: ChallengeSummary.Kind, after failure: AuthenticationStep.Failure? = nil) -> Event {
    switch kind {
    case .pin: .challenged(.request, ChallengeSummary(.pin, counts: pin.counts), after: failure)
    case .custom: .challenged(.request, ChallengeSummary(.custom, takesPIN: true), after: failure)
    case .confirmation, .choice, .biometric, .readBack, .denialOnly:
      .challenged(.request, ChallengeSummary(kind), after: failure)
    }
  }

  @Test(
    "A confirmation is asked for, and handled",
    arguments: [(accept, Decision.accept), (deny, .deny(.declined)), (notMe, .deny(.notMe))])
  func confirmation(gesture: PanelEvent, decision: Decision) async throws {
    try await fixture.handlesRequest { fixture.panel.perform(gesture) }
    expect([(challenge(.confirmation), nil), (.requestHandled(decision, nil), nil)])
  }

  @Test("A request that the user cancels has failed with 9006") func canceled() async throws {
    try await fixture.handlesRequest { fixture.panel.perform(.gesture(Gesture(.cancelKeys, held: .zero))) }
    expect([
      (challenge(.confirmation), nil), (.requestFailed(.init(number: 9006, reason: "canceled at the panel")), nil),
    ])
  }

  @Test("After a wrong PIN, the next challenge says why, with the counts") func wrongPIN() async throws {
    fixture.server.set(challenge: .pin(pin))
    let error = TokenServerError.pinIncorrect(FailureCounts(max: 3, previous: 1))
    fixture.server.fail("deliver", error)
    try await fixture.handlesRequest {
      fixture.panel.perform(.typed("24680"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("13579"))
    }
    expect([
      (challenge(.pin), "pin"), (challenge(.pin, after: .init(error)), "pin"), (.requestHandled(.accept, nil), "pin"),
    ])
    #expect(AuthenticationStep.Failure(error).number == 9009)
  }

  @Test("After a refused code, the next challenge has the result of the script") func refusedCode() async throws {
    fixture.server.set(challenge: .custom(CustomChallenge(authenticator: "number", fallback: pin)))
    let info = AuthenticatorInfo(status: 4000, data: "unknown number")
    let error = TokenServerError.authenticatorFailed(
      AuthenticatorFailure(number: 9027, reason: "custom failed", info: info, isRevoked: false))
    fixture.server.fail("deliver", error)
    fixture.server.set(info: AuthenticatorInfo(status: 2000, data: "welcome"))
    try await fixture.handlesRequest {
      fixture.panel.perform(.typed("1"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("0042"))
    }
    let failure = AuthenticationStep.Failure(error)
    #expect(failure.number == 9027 && failure.info == info && failure.reason == "custom failed")
    expect([
      (challenge(.custom), "number"), (challenge(.custom, after: failure), "number"),
      (.requestHandled(.accept, AuthenticatorInfo(status: 2000, data: "welcome")), "number"),
    ])
  }

  @Test("After a refusal for good, the PIN challenge has the result of the script") func refusedForGood() async throws {
    fixture.server.set(challenge: .custom(CustomChallenge(authenticator: "number", fallback: pin)))
    let info = AuthenticatorInfo(status: 5000, data: "stolen")
    let error = TokenServerError.authenticatorFailed(
      AuthenticatorFailure(number: 9027, reason: "custom failed", info: info, isRevoked: true))
    fixture.server.fail("deliver", error)
    try await fixture.handlesRequest {
      fixture.server.set(challenge: .pin(pin))
      fixture.panel.perform(.typed("1"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("13579"))
    }
    let failure = AuthenticationStep.Failure(error)
    #expect(failure.info == info && failure.isRevoked)
    expect([
      (challenge(.custom), "number"), (challenge(.pin, after: failure), "pin"), (.requestHandled(.accept, nil), "pin"),
    ])
  }

  /// Fails if the refusal is taken for a code that may be typed again: the request is opened again, and the reason
  /// lost.
  @Test("A request that the authenticator ends has failed with the result of the script") func endedByScript()
    async throws
  {
    fixture.server.set(challenge: .custom(CustomChallenge(authenticator: "number", fallback: nil)))
    let error = TokenServerError.authenticatorFailed(
      AuthenticatorFailure(
        number: 9027, reason: "custom failed", info: AuthenticatorInfo(status: 5000, data: "stolen"), isRevoked: true,
        endsRequest: true))
    fixture.server.fail("deliver", error)
    try await fixture.handlesRequest { fixture.panel.perform(.typed("1")) }
    expect([
      (.challenged(.request, ChallengeSummary(.custom), after: nil), "number"), (.requestFailed(.init(error)), nil),
    ])
    #expect(fixture.server.calls(of: "open") == 1 && fixture.panel.shown.contains(.seeLog))
  }

  /// A refused code is no reason for a challenge that the user has chosen.
  @Test("A fallback by choice inherits no failure") func fallbackByChoice() async throws {
    fixture.server.set(challenge: .custom(CustomChallenge(authenticator: "number", fallback: pin)))
    let error = TokenServerError.authenticatorFailed(
      AuthenticatorFailure(number: 9027, reason: "custom failed", isRevoked: false))
    fixture.server.fail("deliver", error)
    try await fixture.handlesRequest {
      fixture.panel.perform(.typed("1"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.enteredNothing)
      await fixture.panel.until(challenges: 3)
      fixture.panel.perform(.typed("13579"))
    }
    expect([
      (challenge(.custom), "number"), (challenge(.custom, after: .init(error)), "number"), (challenge(.pin), "pin"),
      (.requestHandled(.accept, nil), "pin"),
    ])
  }

  @Test("A request that can only be denied says so") func denialOnly() async throws {
    fixture.server.set(challenge: .impossible(because: "no finger"))
    try await fixture.handlesRequest { fixture.panel.perform(deny) }
    expect([(challenge(.denialOnly), nil), (.requestHandled(.deny(.declined), nil), nil)])
  }

  @Test("A request that cannot be opened has failed, and is not asked for") func notHandleable() async throws {
    fixture.server.fail("open", .notHandleable("no"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await HandlerFixture.turn { !steps.isEmpty }
    }
    expect([(.requestFailed(.init(.notHandleable("no"))), nil)])
  }

  @Test("The loss of the account is reported before the accounts are read again") func loss() async throws {
    fixture.server.fail("deliver", .userDeregistered)
    try await fixture.handlesRequest { fixture.panel.perform(accept) }
    expect([
      (challenge(.confirmation), nil), (.requestFailed(.init(.userDeregistered)), nil),
      (.mustEnroll(.init(.userDeregistered)), nil),
    ])
  }

  @Test(
    "The number of each end of a request",
    arguments: [
      (RequestOutcome.expired, 10013), (.elsewhere(.expired), 10013), (.elsewhere(.canceled), 10013),
      (.elsewhere(.superseded), 10013), (.delisted("gone"), 10013), (.elsewhere(.authenticated), 9029),
      (.elsewhere(.rejected), 9029), (.elsewhere(.failed), 9029), (.unknown("never answered"), 9001),
      (.notApproved(.noNetwork("no")), 9000), (.notApproved(.requestNotFound), 10013),
      (.notApproved(.disenrolled), 9020), (.notApproved(.notEnrolled), 9021), (.notApproved(.deviceDeregistered), 9002),
      (.notApproved(.userDeregistered), 9003), (.notApproved(.notHandleable("no")), 10018),
      (.answered(.deny(.canceled), receipt: "r"), 9006),
    ])
  func numbers(outcome: RequestOutcome, number: Int) {
    guard case .requestFailed(let failure) = outcome.event else {
      Issue.record("\(outcome) is no failure")
      return
    }
    #expect(failure.number == number && !failure.reason.isEmpty)
  }

  @Test("Texts from outside are sanitized and shortened") func sanitized() {
    let hostile = "\u{1B}[2J" + String(repeating: "x", count: 5000)
    let failure = AuthenticationStep.Failure(
      .authenticatorFailed(AuthenticatorFailure(number: 9027, reason: hostile, isRevoked: false)))
    for reason in [failure.reason, AuthenticationStep.Failure(number: nil, reason: hostile).reason] {
      #expect(reason.unicodeScalars.count == 500 && !reason.contains("\u{1B}"))
    }
  }
}
