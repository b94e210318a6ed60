// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import Secrets
import ServerBackends
import Synchronization
import TestAM
import Testing
import Vault

@testable import MobileAuth
@testable import PingAMAdapter

@Suite("An account that the user locks", .timeLimit(.minutes(5))) struct LockTests {
  private static let tampering = "deviceTampering"

  private let fixture: PingAMFixture
  private let account: AccountRecord

  init() async throws {
    fixture = try PingAMFixture()
    account = try await fixture.enrolled(policies: #"{"deviceTampering": {"score": 0.5}, "unheardOf": {}}"#)
  }

  private var conditions: PolicyConditions {
    PolicyConditions(hasPIN: false, isTamperedWith: { [fixture] in fixture.isTamperedWith.withLock { $0 } })
  }

  private func locked(_ account: AccountRecord, with policy: String? = Self.tampering) throws -> AccountRecord {
    try account.locked(with: policy, isRequired: true, conditions)
  }

  private func unlocked(_ account: AccountRecord) throws -> AccountRecord {
    try account.unlocked(conditions)
  }

  @Test("Takes messages in, and answers none until it is unlocked, also after a restart")
  func takesMessagesInAndAnswersNoneUntilItIsUnlockedAlsoAfterARestart() async throws {
    let locked = try self.locked(account)
    try fixture.vault.put(locked, nil)
    let push = try fixture.deliver()
    for _ in 1...2 {
      let server = try fixture.server()
      let pending = try #require(try await server.pendingRequests().first)
      #expect(pending.blockedBy?.lock.contains("locked by the user with the policy deviceTampering") == true)
      #expect(pending.blockedBy?.contents.hasPrefix("push, sent at ") == true)
      #expect(pending.blockedBy?.contents.contains("says \"") == true)
      await #expect { try await server.open(pending) } throws: {
        if case TokenServerError.locked(let how) = $0 { how.hasPrefix("locked by the user") } else { false }
      }
    }
    try fixture.vault.put(try unlocked(locked), nil)
    let server = try fixture.server()
    let waiting = try await server.pendingRequests()
    #expect(waiting.count == 1 && waiting.allSatisfy { $0.blockedBy == nil })
    _ = try await server.deliver(try await fixture.answer(server, .hold))
    #expect(fixture.am.verify(push) == .isTrue)
  }

  @Test("Answers no request that was shown before", arguments: [Gesture.Kind.hold, .doublePress])
  func answersNoRequestThatWasShownBefore(gesture: Gesture.Kind) async throws {
    let push = try fixture.deliver()
    let server = try fixture.server()
    let request = try await server.open(try #require(try await server.pendingRequests().first))
    let response = try #require(
      request.answered(by: Gesture(gesture, held: .seconds(1)), after: .seconds(1), idempotencyKey: "key"))
    try fixture.vault.put(try locked(account), nil)
    await #expect { try await server.seal(response) } throws: { "\($0)".contains("locked by the user") }
    #expect(fixture.am.verify(push) == .waiting)
    let waiting = try await server.pendingRequests()
    #expect(waiting.count == 1 && waiting.allSatisfy { $0.blockedBy != nil })
  }

  @Test("Approves nothing with a PIN that had to wait") func approvesNothingWithPINThatHadToWait() async throws {
    let fixture = try PingAMFixture()
    let account = try await fixture.enrolled(pin: pin("13579"), policies: #"{"biometricAvailable": {}}"#)
    let push = try fixture.deliver(.biometric)
    let server = try fixture.server()
    fixture.pinVerifier.waits.withLock { $0 = [.seconds(30)] }
    let sealed = Task { try await fixture.answer(server, .enter, pin: pin("13579")) }
    await fixture.clock.untilAsleep()
    let locked = try fixture.vault.account(account.id).locked(
      with: "biometricAvailable", isRequired: true, PolicyConditions(hasPIN: true, isTamperedWith: { false }))
    try fixture.vault.put(locked, nil)
    fixture.clock.advance(by: .seconds(30))
    await #expect { try await sealed.finished() } throws: { "\($0)".contains("locked by the user") }
    #expect(fixture.am.verify(push) == .waiting)
  }

  @Test("Shows in pending also when a policy locks it") func showsInPendingAlsoWhenAPolicyLocksIt() async throws {
    _ = try fixture.deliver()
    let server = try fixture.server()
    fixture.isTamperedWith.withLock { $0 = true }
    let pending = try #require(try await server.pendingRequests().first)
    #expect(pending.blockedBy?.lock.contains("its policy deviceTampering does not hold") == true)
    // When the policy holds again.
    fixture.isTamperedWith.withLock { $0 = false }
    #expect(try await server.pendingRequests().map(\.blockedBy) == [nil])
  }

  @Test("Ends requests that expire while the account is locked") func endsRequestsThatExpireWhileTheAccountIsLocked()
    async throws
  {
    try fixture.vault.put(try locked(account), nil)
    try fixture.deliver()
    let server = try fixture.server()
    let transaction = try #require(try await server.pendingRequests().first).transaction
    fixture.clock.advance(by: .seconds(121))
    #expect(try await server.pendingRequests().isEmpty)
    #expect(try fixture.vault.message(transaction)?.state == .expired)
  }
}
