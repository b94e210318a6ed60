// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// Requests that are approved with a fingerprint, the PIN, or denied.
@Suite("Requests with a fingerprint", .timeLimit(.minutes(5))) struct FingerprintChallengeTests {
  private let reader = ScriptedDriver("finger", kind: .biometric)
  private let fixture: HandlerFixture
  private let pin = PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 1))
  private let match = DriverEvent.data(AuthenticatorData(SecretBytes(copying: [])))
  private let noMatch = DriverEvent.canceled(FingerprintDriver.noMatch)

  init() { fixture = HandlerFixture(drivers: AuthenticatorDrivers([FingerprintDriver(reader)])) }

  private func show(hasFallback: Bool = true) async {
    fixture.server.set(
      challenge: .custom(
        CustomChallenge(
          authenticator: "finger", kind: .biometric, fallback: hasFallback ? pin : nil, input: .external(hold: false),
          registration: [7])))
    fixture.announce(fixture.request(1, lives: .seconds(600)))
    await asked(1)
  }

  private func asked(_ count: Int) async { await fixture.pass { reader.calls.count == count } }

  /// Presents a finger, in another use of the reader each.
  private func present(_ events: DriverEvent...) async {
    for event in events {
      await asked(reader.ended + 1)
      reader.say(event)
      reader.end()
    }
  }

  private var outcomes: [String] { fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) }

  @Test("The finger approves") func fingerApproves() async throws {
    try await fixture.withHandler {
      await show()
      await present(match)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.authenticator(orPINOf: 5, hold: false)])
    #expect(outcomes == ["approved, receipt receipt-1"] && fixture.server.pins.isEmpty)
    #expect(fixture.server.delivered.map(\.gesture.kind) == [.authenticator] && fixture.server.revoked.isEmpty)
  }

  @Test("A scan that fails is no attempt") func retries() async throws {
    try await fixture.withHandler {
      await show()
      for _ in 0..<5 { reader.say(.retry("not centered")) }
      await present(match)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.shown.contains(.noSuchChoice) && fixture.server.revoked.isEmpty)
    #expect(!fixture.stateStore.audit.contains { $0.kind == .authenticatorFailed })
  }

  /// Fails if the fallback is shown as a wrong PIN, or costs an attempt of it.
  @Test("Three fingers that do not match end the registration, and leave the PIN") func threeFingers() async throws {
    try await fixture.withHandler {
      await show()
      await present(noMatch, noMatch, noMatch)
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.shown.last == .pinWanted && fixture.server.delivered.isEmpty)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.revoked == ["finger of A: 3 fingers did not match"])
    #expect(fixture.panel.prompts.last == .digits(count: 5) && fixture.server.pins.count == 1)
    #expect(outcomes == ["approved, receipt receipt-1"])
    #expect(!fixture.panel.shown.contains { if case .pinWrong = $0 { true } else { false } })
    #expect(fixture.events.all.contains(.counted(AccountID("A"), FailureCounts(max: 3, previous: 0))))
  }

  @Test("Without a PIN, three fingers that do not match leave only the denial") func withoutPIN() async throws {
    try await fixture.withHandler {
      await show(hasFallback: false)
      await present(noMatch, noMatch, noMatch)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(accept)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts.last == .denial && fixture.server.revoked.count == 1)
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  @Test("A reader that waits in vain is asked no more, and the registration stays") func noFinger() async throws {
    try await fixture.withHandler {
      await show()
      await present(.canceled(FingerprintDriver.noFinger))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.revoked.isEmpty && reader.calls.count == 1)
    #expect(fixture.panel.prompts.last == .digits(count: 5))
  }

  @Test("A reader that is unplugged in the middle denies nothing") func unplugged() async throws {
    try await fixture.withHandler {
      await show()
      await present(.canceled("the reader was removed"))
      await present(match)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(outcomes == ["approved, receipt receipt-1"])
    #expect(
      fixture.stateStore.audit.filter { $0.kind == .authenticatorFailed }.map(\.detail) == [
        "finger: the reader was removed"
      ])
  }

  /// Fails if a finger approves a request in the middle of a PIN, which the user then types elsewhere.
  @Test("The first digit of the PIN ends the reader's use; wiped digits begin another one") func firstDigit()
    async throws
  {
    try await fixture.withHandler {
      await show()
      fixture.panel.perform(.typing(true))
      await HandlerFixture.turn { reader.ended == 1 }
      fixture.panel.perform(.typing(false))
      await asked(2)
      await present(match)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(outcomes == ["approved, receipt receipt-1"])
    #expect(!fixture.stateStore.audit.contains { $0.kind == .authenticatorFailed })
  }

  @Test("The PIN, typed instead, ends the reader's use") func pinInstead() async throws {
    try await fixture.withHandler {
      await show()
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    await HandlerFixture.turn { reader.ended == 1 }
    #expect(fixture.server.pins.count == 1 && fixture.server.revoked.isEmpty)
  }

  @Test("A denial at the panel ends the reader's use") func denial() async throws {
    try await fixture.withHandler {
      await show()
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    await HandlerFixture.turn { reader.ended == 1 }
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }
}
