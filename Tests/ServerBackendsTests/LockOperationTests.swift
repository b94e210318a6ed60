// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import Secrets
import Testing

@testable import ServerBackends

@Suite("Locks of accounts", .timeLimit(.minutes(1))) struct LockOperationTests {
  private static let tampering = "deviceTampering"
  private static let policies = #"{"deviceTampering": {"score": 0.5}, "unheardOf": {}}"#

  private let fixture: OperationsFixture
  private var operations: AccountOperations { fixture.operations }

  init() throws {
    fixture = try OperationsFixture()
    try fixture.account("ann") { $0.policies = Self.policies }
  }

  private func lock() throws -> AccountLock? { try operations.lock(of: try fixture.store.account(AccountID("ann"))) }

  @Test(
    "An account is locked with one of its own policies only",
    arguments: [(nil, 6_100_001), ("", 6_100_001), ("biometricAvailable", 6_100_002), ("unheardof", 6_100_002)]
      as [(String?, Int)])
  func needsPolicy(policy: String?, number: Int) throws {
    #expect {
      try operations.lock("ann", with: policy)
    } throws: { fault in
      (fault as? LockError)?.number == number && "\(fault)".contains("deviceTampering, unheardOf")
    }
    #expect(try lock() == nil)
  }

  @Test("An account without policies is not locked") func noPolicies() throws {
    try fixture.account("bob")
    #expect(throws: LockError.policyNotAttached("x", attached: [])) { try operations.lock("bob", with: "x") }
  }

  @Test("Where locks take no policy, an account is locked without one") func withoutPolicy() throws {
    let account = try fixture.account("bob")
    let conditions = PolicyConditions(hasPIN: false, isTamperedWith: { false })
    #expect(throws: BackendError.self) { try account.locked(with: "x", isRequired: false, conditions) }
    let locked = try account.locked(with: nil, isRequired: false, conditions)
    #expect(try locked.currentLock(conditions) == .manual(policy: nil))
    #expect(try locked.unlocked(conditions).currentLock(conditions) == nil)
  }

  @Test("An account is locked once and unlocked once", arguments: ["deviceTampering", "unheardOf"])
  func onceEach(policy: String) throws {
    #expect(throws: LockError.notLocked) { try operations.unlock("ann") }
    #expect(try operations.lock("ann", with: policy).lock == UserLock(policy: policy))
    #expect(try lock() == .manual(policy: policy))
    #expect(throws: LockError.lockedAlready(.manual(policy: policy))) { try operations.lock("ann", with: policy) }
    #expect(throws: LockError.locked(AccountID("ann"), .manual(policy: policy))) {
      try operations.requireUnlocked(try fixture.store.account(AccountID("ann")))
    }
    _ = try operations.unlock("ann")
    #expect(try lock() == nil)
    #expect(throws: LockError.notLocked) { try operations.unlock("ann") }
    #expect(fixture.store.audit.map(\.kind) == [.locked, .unlocked])
    #expect(fixture.store.audit.map(\.detail) == ["with the policy \(policy)", ""])
  }

  @Test("A policy that does not hold keeps an account locked, with the remedy") func policyHolds() throws {
    _ = try operations.lock("ann", with: Self.tampering)
    fixture.store.tamper()
    // The user's own lock is removed, and the policy's stays.
    _ = try operations.unlock("ann")
    #expect(try lock() == AccountPolicies.lock(by: Self.tampering))
    #expect(throws: LockError.lockedAlready(AccountPolicies.lock(by: Self.tampering))) {
      try operations.lock("ann", with: Self.tampering)
    }
    #expect {
      try operations.unlock("ann")
    } throws: { fault in
      fault as? LockError == .heldByPolicy(AccountPolicies.lock(by: Self.tampering))
        && "\(fault)".contains("approval-token log --verify")
    }
    fixture.store.tamper(false)
    #expect(try lock() == nil)
  }

  @Test("A policy that requires a PIN holds once the token verifies one") func policyOfPIN() throws {
    try fixture.account("bob") { $0.policies = #"{"biometricAvailable": {}}"# }
    #expect(operations.lock(ifReadable: AccountID("bob"))?.description.contains("approval-token pin change") == true)
    try fixture.store.setPIN(
      of: AccountID("bob"), to: pin("13579"), keys: .init(copying: []), limit: 3, parameters: .standard,
      in: fixture.environment)
    #expect(operations.lock(ifReadable: AccountID("bob")) == nil)
  }

  /// Fails if the lock is written over what the service has changed in the meantime.
  @Test("A change of another writer is not overwritten") func compareAndSwap() throws {
    let store = fixture.store
    store.contest {
      var account = try store.account(AccountID("ann"))
      account.displayName = "Ann"
      try store.put(account, nil)
    }
    let locked = try operations.lock("ann", with: Self.tampering)
    #expect(locked.displayName == "Ann" && locked.lock != nil)
    #expect(try store.account(AccountID("ann")).isSame(as: locked))
    #expect(store.audit.map(\.kind) == [.locked])
  }

  @Test("What has no lock cannot be locked") func notLockable() throws {
    try fixture.account("bob", at: OperationsFixture.plain)
    try fixture.account("eve", stage: .mustEnrollAgain)
    #expect(throws: AccountError.notLockable(AccountID("bob"), kinds: "Able")) { try operations.lock("bob", with: nil) }
    #expect(throws: AccountError.unusable(AccountID("eve"))) { try operations.lock("eve", with: Self.tampering) }
    #expect(throws: AccountError.unknown("zoe")) { try operations.unlock("zoe") }
    #expect(try operations.lock(of: try fixture.store.account(AccountID("bob"))) == nil)
    #expect(fixture.store.audit.isEmpty)
  }

  /// Fails if a lock disappears with the record of its server.
  @Test("An account whose server is missing is not taken for unlocked") func missingServer() throws {
    let account = try fixture.account("bob", at: TokenServerID("gone.example"))
    #expect(throws: StateStoreError.corrupt(.serverOf(account.id, account.server))) {
      try operations.requireUnlocked(account)
    }
  }
}
