// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// Requests that are approved with the code of a custom authenticator.
@Suite(.timeLimit(.minutes(5))) struct CustomChallengeTests {
  private let fixture = HandlerFixture()
  private let pin = PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 1))

  private func ask(hasFallback: Bool = true) {
    let challenge = CustomChallenge(authenticator: "number", fallback: hasFallback ? pin : nil)
    fixture.server.set(challenge: .custom(challenge))
  }

  private var outcomes: [String] { fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) }

  @Test("The code approves, and counts nothing as a PIN") func codeApproves() async throws {
    ask()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      #expect(fixture.panel.shown.last == .numberWanted)
      fixture.panel.perform(.typed("0042"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.code(orEnterAlone: true)])
    #expect(fixture.server.data == [AuthenticatorData(EnteredDigits(typing: "0042"))] && fixture.server.pins.isEmpty)
    #expect(outcomes == ["approved, receipt receipt-1"])
    #expect(fixture.stateStore.audit.contains { $0.kind == .decided && $0.detail == "accept by code" })
    // The code says nothing about the PIN: its count is as the server reported it.
    #expect(!fixture.events.all.contains(.counted(AccountID("A"), FailureCounts(max: 3, previous: 0))))
  }

  @Test("Enter alone asks for the PIN instead, and sends nothing") func fallbackByChoice() async throws {
    ask()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.enteredNothing)
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.shown.last == .pinWanted && fixture.server.delivered.isEmpty)
      // Digits of another number than the PIN's are no answer.
      fixture.panel.perform(.typed("1357"))
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.code(orEnterAlone: true), .digits(count: 5)])
    #expect(fixture.server.data.isEmpty && fixture.server.pins.count == 1)
    #expect(fixture.stateStore.audit.contains { $0.kind == .decided && $0.detail == "accept by PIN" })
    #expect(fixture.events.all.contains(.counted(AccountID("A"), FailureCounts(max: 3, previous: 0))))
  }

  // MARK: No PIN is typed as a code

  /// The digits of a code are sent to the server. Fails if the code is asked for again, where the user expects the PIN.
  @Test("After a wrong PIN, the PIN is asked for again, not the code") func wrongPINInstead() async throws {
    ask()
    fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.enteredNothing)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("24680"))
      await fixture.panel.until(challenges: 3)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.code(orEnterAlone: true), .digits(count: 5), .digits(count: 5)])
    #expect(fixture.server.data.isEmpty && outcomes == ["approved, receipt receipt-1"])
  }

  /// A server can refuse the right PIN, and send the same request with another method.
  @Test("A request that wanted the PIN does not want a code later", arguments: [true, false])
  func codeAfterPIN(hasFallback: Bool) async throws {
    fixture.server.set(challenge: .pin(pin))
    fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      ask(hasFallback: hasFallback)
      fixture.panel.perform(.typed("13579"))
      if hasFallback {
        await fixture.panel.until(challenges: 2)
        fixture.panel.perform(.typed("13579"))
      }
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    let pins = [Prompt](repeating: .digits(count: 5), count: hasFallback ? 2 : 1)
    #expect(fixture.panel.prompts == pins && fixture.server.data.isEmpty)
    #expect(outcomes.count == 1 && outcomes[0].hasPrefix(hasFallback ? "approved" : "not approved"))
  }

  /// Fails if a newer request can take the digits of the PIN that the user has begun to type.
  @Test("Enter alone keeps the request on the panel") func pinInsteadKeeps() async throws {
    ask()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.enteredNothing)
      await fixture.panel.until(challenges: 2)
      fixture.announce(fixture.request(2, lives: .seconds(600)), fixture.request(1, lives: .seconds(600)))
      await HandlerFixture.turn { fixture.server.calls(of: "open") == 2 }
      fixture.panel.perform(.typed("13579"))
      await HandlerFixture.turn { fixture.server.pins.count == 1 }
    }
    #expect(fixture.server.delivered.first?.request.pending.transaction == HandlerFixture.transaction(1))
  }

  @Test("Without a fallback, only the code approves", arguments: [accept, .enteredNothing])
  func onlyTheCode(event: PanelEvent) async throws {
    ask(hasFallback: false)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.code(orEnterAlone: false)])
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  @Test("A refused code is asked for again", arguments: ["deliver", "seal"])
  func refusedCode(step: String) async throws {
    ask()
    let info = AuthenticatorInfo(status: 4000, data: "unknown number")
    fixture.server.fail(
      step,
      .authenticatorFailed(AuthenticatorFailure(number: 9027, reason: "custom failed", info: info, isRevoked: false)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("1"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("0042"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.shown.contains(.noSuchChoice))
    #expect(
      fixture.stateStore.audit.contains {
        $0.kind == .authenticatorFailed && $0.detail == "custom failed (status 4000: unknown number)"
      })
    #expect(outcomes == ["approved, receipt receipt-1"])
  }

  @Test("After the authenticator was revoked, the request wants the PIN") func revokedAuthenticator() async throws {
    ask()
    fixture.server.fail(
      "deliver", .authenticatorFailed(AuthenticatorFailure(number: 9022, reason: "gone", isRevoked: true)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      // What the adapter makes of the request without its authenticator.
      fixture.server.set(challenge: .pin(pin))
      fixture.panel.perform(.typed("1"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.code(orEnterAlone: true), .digits(count: 5)])
    #expect(outcomes == ["approved, receipt receipt-1"])
  }
}
