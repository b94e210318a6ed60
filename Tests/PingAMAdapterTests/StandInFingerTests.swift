// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Secrets
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import MobileAuth
@testable import PingAMAdapter

/// A finger in place of the PIN where AM requires user verification.
@Suite("A finger for AM's user verification", .timeLimit(.minutes(5))) struct StandInFingerTests {
  private let fixture: PingAMFixture
  private let reader = ScriptedDriver("finger", kind: .biometric)
  private let match = AuthenticatorData(SecretBytes(copying: []))
  private let pinChallenge = PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))

  init() async throws {
    fixture = try PingAMFixture()
    try await fixture.enrolled(pin: pin("13579"))
    try fixture.vault.update(AccountID("ann")) { record in
      var record = record
      record.standIns = [StandIn("finger", .finger, registration: [7])]
      return record
    }
  }

  private func server() throws -> PingAMServerClient { try fixture.server(drivers: AuthenticatorDrivers([reader])) }

  private func challenge(_ server: PingAMServerClient) async throws -> Challenge {
    try await server.open(try #require(try await server.pendingRequests().first)).contents.challenge
  }

  @Test("Approves after a right PIN, until it is revoked") func approves() async throws {
    let server = try server()
    let first = try fixture.deliver(.biometric)
    #expect(try await challenge(server) == .pin(pinChallenge))
    _ = try await server.deliver(try await fixture.answer(server, .enter, pin: pin("13579")))
    #expect(fixture.am.verify(first) == .isTrue)

    let second = try fixture.deliver(.biometric)
    guard case .custom(let custom) = try await challenge(server) else {
      Issue.record("no finger is asked for")
      return
    }
    #expect(custom.fallback == pinChallenge && custom.server == "am.example" && custom["finger"]?.registration == [7])
    let verdict = try await server.deliver(try await fixture.answer(server, .authenticator, key: "2", data: match))
    #expect(verdict.decision == .accept && fixture.am.verify(second) == .isTrue)

    _ = try fixture.deliver(.biometric)
    server.revoke("finger", of: AccountID("ann"), because: "3 fingers did not match")
    #expect(try await challenge(server) == .pin(pinChallenge))
    #expect(try fixture.vault.account(AccountID("ann")).standIns.isEmpty)
  }

  @Test("Pushes of other kinds ask for no finger") func otherKinds() async throws {
    let server = try server()
    server.standIns?.noteRightPIN(of: AccountID("ann"))
    try fixture.deliver(.plain)
    #expect(try await challenge(server) == .confirmation)
  }

  @Test("Where no PIN may stand for a fingerprint, the finger alone does") func withoutPIN() async throws {
    fixture.takesPIN.withLock { $0 = false }
    let server = try server()
    server.standIns?.noteRightPIN(of: AccountID("ann"))
    let push = try fixture.deliver(.biometric)
    guard case .custom(let custom) = try await challenge(server) else {
      Issue.record("no finger is asked for")
      return
    }
    #expect(custom.fallback == nil)
    _ = try await server.deliver(try await fixture.answer(server, .authenticator, data: match))
    #expect(fixture.am.verify(push) == .isTrue)
  }
}
