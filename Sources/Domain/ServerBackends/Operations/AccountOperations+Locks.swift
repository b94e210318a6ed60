// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import MobileAuth

/// Account locks: set by the user, or by a policy that does not hold on this device.
extension AccountOperations {
  /// The lock of an account. Nil if the account is usable, or if accounts of its server have no locks.
  package func lock(of account: AccountRecord) throws(StateStoreError) -> AccountLock? {
    guard try backend(of: account) is any AccountLocks else { return nil }
    return try account.currentLock(try conditions(account))
  }

  /// The lock of an account for lists. Nil also if the account record cannot be read.
  package func lock(ifReadable account: AccountID) -> AccountLock? {
    guard let record = try? store.account(account) else { return nil }
    return try? lock(of: record)
  }

  /// - Throws: `LockError` if the account is locked; `StateStoreError`.
  package func requireUnlocked(_ account: AccountRecord) throws {
    if let lock = try lock(of: account) { throw LockError.locked(account.id, lock) }
  }

  /// Locks an account on the user's command.
  /// - Parameter policy: one of the policies that the server attached to the account; nil where accounts have none.
  /// - Throws: `AccountError`, and as `AccountRecord.locked`.
  package func lock(_ name: String, with policy: String?) throws -> AccountRecord {
    let detail = policy.map { "with the policy \($0.sanitized)" } ?? ""
    return try changeLock(of: name, .locked, detail) { account, backend in
      try account.locked(with: policy, isRequired: type(of: backend).locksWithPolicy, try conditions(account))
    }
  }

  /// Removes a lock that the user set. A policy that does not hold keeps the account locked.
  /// - Throws: `AccountError`, and as `AccountRecord.unlocked`.
  package func unlock(_ name: String) throws -> AccountRecord {
    try changeLock(of: name, .unlocked, "") { account, _ in try account.unlocked(try conditions(account)) }
  }

  /// Applies `body` to the account as a compare-and-swap: the running service may write to the account at the same
  /// time.
  private func changeLock(
    of name: String, _ kind: AuditEntry.Kind, _ detail: String,
    _ body: (AccountRecord, any AccountLocks) throws -> AccountRecord
  ) throws -> AccountRecord {
    let id = AccountID(name)
    let entry = environment.auditEntry(kind, account: id, detail: detail)
    let changed = try store.update(id, noting: entry) { account in try body(account, try lockable(account)) }
    guard let changed else { throw AccountError.unknown(name) }
    return changed
  }

  private func lockable(_ account: AccountRecord) throws -> any AccountLocks {
    guard let backend = try backend(of: account) as? any AccountLocks else {
      throw AccountError.notLockable(account.id, kinds: kinds.names { $0 is any AccountLocks.Type })
    }
    guard account.stage == .active else { throw AccountError.unusable(account.id) }
    return backend
  }

  private func conditions(_ account: AccountRecord) throws(StateStoreError) -> PolicyConditions {
    let hasPIN = try store.failureCounts(of: account.id, in: environment) != nil
    return PolicyConditions(hasPIN: hasPIN, isTamperedWith: { [store] in store.isTamperedWith })
  }
}
