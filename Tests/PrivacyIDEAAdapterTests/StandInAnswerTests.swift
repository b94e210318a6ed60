// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import ServerBackends
import Testing

@testable import PrivacyIDEAAdapter

/// A finger in place of the PIN where the administrator requires a fingerprint.
@Suite("A finger for the fingerprint that is required", .timeLimit(.minutes(5))) struct StandInAnswerTests {
  @Test("A finger stands for the PIN where a fingerprint is required, after a right PIN, and not with a choice")
  func fingerStandsForThePIN() async throws {
    let reader = ScriptedDriver("finger", kind: .biometric)
    let drivers = AuthenticatorDrivers([reader])
    let fixture = try PrivacyIDEAFixture(
      wantsPIN: true, wantsBiometric: true, takesPINForBiometric: true, pinVerifier: ScriptedPINVerifier([.right]),
      drivers: drivers)
    let pinChallenge = PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))
    fixture.server.challenge("PIPU0")
    let first = try await fixture.open()
    #expect(first.contents.challenge == .pin(pinChallenge))
    _ = try await fixture.answer(first, .enter, pin: pin("13579"))

    let nonce = fixture.server.challenge("PIPU0")
    let second = try await fixture.open()
    guard case .custom(let custom) = second.contents.challenge else {
      Issue.record("no finger is asked for")
      return
    }
    #expect(custom.fallback == pinChallenge && custom["finger"]?.registration == [7])
    _ = try await fixture.answer(second, .authenticator, data: AuthenticatorData(SecretBytes(copying: [])))
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0"])

    fixture.server.challenge("PIPU0", presence: "M,H", right: "H")
    guard case .choice(let choice) = try await fixture.open().contents.challenge else {
      Issue.record("no choice is asked for")
      return
    }
    #expect(choice.pin == pinChallenge)
  }

  @Test("Where the administrator requires a PIN, no finger stands for it") func noFingerForThePIN() async throws {
    let fixture = try PrivacyIDEAFixture(
      wantsPIN: true, pinVerifier: ScriptedPINVerifier([.right]),
      drivers: AuthenticatorDrivers([ScriptedDriver("finger", kind: .biometric)]))
    fixture.token.standIns?.noteRightPIN(of: AccountID("account 0"))
    fixture.server.challenge("PIPU0")
    guard case .pin = try await fixture.open().contents.challenge else {
      Issue.record("the PIN is not asked for")
      return
    }
  }

  @Test("Without pin_for_biometric, also of an earlier enrollment, the finger approves, and the PIN does not")
  func withoutPIN() async throws {
    let fixture = try PrivacyIDEAFixture(
      wantsPIN: true, wantsBiometric: true, pinVerifier: ScriptedPINVerifier([]),
      drivers: AuthenticatorDrivers([ScriptedDriver("finger", kind: .biometric)]))
    for presence in [nil, "M,H"] {
      let nonce = fixture.server.challenge("PIPU0", presence: presence, right: "H")
      let denied = try await fixture.open()
      guard case .impossible(let why) = denied.contents.challenge else {
        Issue.record("it can be approved")
        return
      }
      #expect(why.contains("pin_for_biometric"))
      _ = try await fixture.answer(denied, .doublePress)
      #expect(fixture.server.answers(to: nonce).allSatisfy { $0.hasPrefix("\(nonce)|PIPU0|decline") })
      #expect(fixture.server.answers(to: nonce).count == 1)
    }
    fixture.token.standIns?.noteRightPIN(of: AccountID("account 0"))
    let nonce = fixture.server.challenge("PIPU0")
    let request = try await fixture.open()
    guard case .custom(let custom) = request.contents.challenge else {
      Issue.record("no finger is asked for")
      return
    }
    #expect(custom.fallback == nil)
    _ = try await fixture.answer(request, .authenticator, data: AuthenticatorData(SecretBytes(copying: [])))
    #expect(fixture.server.answers(to: nonce) == ["\(nonce)|PIPU0"])
  }
}
