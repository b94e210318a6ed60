// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import DisplayText
package import MobileAuth
package import ServerBackends
import Vault

/// Account locks: set by the user, or by a policy that does not hold on this device.
extension Backends {
  /// The lock of an account. Nil if the account is usable, or if accounts of its server have no locks.
  package func lock(of account: AccountRecord) throws -> AccountLock? {
    guard try backend(of: account) is any AccountLocks else { return nil }
    return try account.currentLock(try conditions(account))
  }

  /// The lock of an account for lists. Nil also if the account record cannot be read.
  package func lock(ifReadable account: AccountID) -> AccountLock? {
    guard let record = try? vault.account(account) else { return nil }
    return try? lock(of: record)
  }

  /// - Throws: `LockError` if the account is locked.
  package func requireUnlocked(_ account: AccountRecord) throws {
    if let lock = try lock(of: account) { throw LockError.locked(account.id, lock) }
  }

  /// Locks an account on the user's command.
  /// - Parameter policy: one of the policies that the server attached to the account; nil where accounts have none.
  package func lockManually(_ name: String, with policy: String?) throws -> AccountRecord {
    let detail = policy.map { "with the policy \($0.sanitized)" } ?? ""
    return try changeLock(of: name, .locked, detail) { account, backend in
      try account.locked(with: policy, isRequired: type(of: backend).locksWithPolicy, try conditions(account))
    }
  }

  /// Removes a lock that the user set. A policy that does not hold keeps the account locked.
  package func unlockManually(_ name: String) throws -> AccountRecord {
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
    let changed = try vault.update(id, noting: entry) { account in
      try body(account, try lockable(account))
    }
    guard let changed else {
      throw CommandError(.usage, "no account \"\(name)\"; `approval-token accounts` lists the accounts")
    }
    return changed
  }

  private func lockable(_ account: AccountRecord) throws -> any AccountLocks {
    guard let backend = try backend(of: account) as? any AccountLocks else {
      let lockable = Self.names(of: kinds) { $0 is any AccountLocks.Type }
      throw CommandError(.usage, "account \(account.id) cannot be locked: only accounts of \(lockable) can")
    }
    guard account.stage == .active else {
      throw CommandError(.refused, "account \(account.id) is not active, so it cannot be used or locked")
    }
    return backend
  }

  private func conditions(_ account: AccountRecord) throws -> PolicyConditions {
    let hasPIN = try vault.pinStatus(of: account.id, in: environment) != nil
    return PolicyConditions(hasPIN: hasPIN, isTamperedWith: { vault.isTamperedWith })
  }
}
