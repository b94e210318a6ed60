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

  private func lock(of account: AccountRecord) throws -> AccountLock? {
    try account.currentLock(conditions)
  }

  private func locked(_ account: AccountRecord, with policy: String? = Self.tampering) throws -> AccountRecord {
    try account.locked(with: policy, isRequired: true, conditions)
  }

  private func unlocked(_ account: AccountRecord) throws -> AccountRecord {
    try account.unlocked(conditions)
  }

  // MARK: The rules

  @Test(
    "Is locked with a policy of its own alone",
    arguments: [(nil, 6_100_001), ("", 6_100_001), ("biometricAvailable", 6_100_002), ("unheardof", 6_100_002)]
      as [(String?, Int)])
  func isLockedWithAPolicyOfItsOwnAlone(policy: String?, number: Int) throws {
    #expect {
      try locked(account, with: policy)
    } throws: { fault in
      (fault as? LockError)?.number == number && "\(fault)".contains("deviceTampering, unheardOf")
    }
  }

  @Test("Where locks take no policy, is locked without one") func isLockedWithoutPolicy() throws {
    #expect(throws: BackendError.self) { try account.locked(with: Self.tampering, isRequired: false, conditions) }
    let locked = try account.locked(with: nil, isRequired: false, conditions)
    #expect(try lock(of: locked) == .manual(policy: nil) && lock(of: try unlocked(locked)) == nil)
  }

  @Test("At an AM that gave it no policy is not locked") func atAnAMThatGaveItNoPolicyIsNotLocked() async throws {
    let fixture = try PingAMFixture()
    let account = try await fixture.enrolled()
    #expect(throws: LockError.policyNotAttached("x", attached: [])) { try locked(account, with: "x") }
  }

  @Test("Is locked once, and unlocked once", arguments: ["deviceTampering", "unheardOf"])
  func isLockedOnceAndUnlockedOnce(policy: String) throws {
    #expect(throws: LockError.notLocked) { try self.unlocked(account) }
    let locked = try self.locked(account, with: policy)
    #expect(try lock(of: locked) == .manual(policy: policy))
    #expect(throws: LockError.lockedAlready(.manual(policy: policy))) { try self.locked(locked) }
    let unlocked = try self.unlocked(locked)
    #expect(try lock(of: unlocked) == nil)
    #expect(throws: LockError.notLocked) { try self.unlocked(unlocked) }
  }

  @Test("Is not opened while a policy does not hold, and says what would make it hold")
  func isNotOpenedWhileAPolicyDoesNotHoldAndSaysWhatWouldMakeItHold() throws {
    let locked = try self.locked(account)
    fixture.isTamperedWith.withLock { $0 = true }
    #expect(try lock(of: account) == AccountPolicies.lock(by: Self.tampering))
    #expect(throws: LockError.lockedAlready(AccountPolicies.lock(by: Self.tampering))) { try self.locked(account) }
    #expect {
      try unlocked(account)
    } throws: { fault in
      fault as? LockError == .heldByPolicy(AccountPolicies.lock(by: Self.tampering))
        && "\(fault)".contains("approval-token log --verify")
    }
    // The user's own lock is removed, and the policy's stays.
    #expect(try lock(of: try unlocked(locked)) == AccountPolicies.lock(by: Self.tampering))
  }

  @Test("Whose policy requires a PIN says how to choose one") func whosePolicyRequiresPINSaysHowToChooseOne()
    async throws
  {
    let fixture = try PingAMFixture()
    let account = try await fixture.enrolled(pin: pin("13579"), policies: #"{"biometricAvailable": {}}"#)
    #expect {
      try unlocked(account)
    } throws: { fault in
      fault as? LockError == .heldByPolicy(AccountPolicies.lock(by: "biometricAvailable"))
        && "\(fault)".contains("approval-token pin change")
    }
  }

  // MARK: Operations that a lock prevents

  @Test("Takes messages in, and answers none until it is unlocked, also after a restart")
  func takesMessagesInAndAnswersNoneUntilItIsUnlockedAlsoAfterARestart() async throws {
    let locked = try self.locked(account)
    try fixture.vault.put(locked, nil)
    let push = try fixture.deliver()
    for _ in 1...2 {
      let server = try fixture.server()
      let pending = try #require(try await server.pendingRequests().first)
      #expect(pending.blockedBy?.lock.contains("locked by hand with the policy deviceTampering") == true)
      #expect(pending.blockedBy?.contents.hasPrefix("push, sent at ") == true)
      #expect(pending.blockedBy?.contents.contains("says \"") == true)
      await #expect { try await server.open(pending) } throws: {
        if case TokenServerError.locked(let how) = $0 { how.hasPrefix("locked by hand") } else { false }
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
    await #expect { try await server.seal(response) } throws: { "\($0)".contains("locked by hand") }
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
    await #expect { try await sealed.value } throws: { "\($0)".contains("locked by hand") }
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
