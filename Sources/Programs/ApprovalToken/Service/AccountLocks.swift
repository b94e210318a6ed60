// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import PingAMAdapter
import Vault

/// Account locks: set by the user, or by a policy that does not hold on this device.
extension Vault {
  /// The lock of an account. Nil if the account is usable, or if accounts of its server have no locks.
  func lock(of account: AccountRecord, _ clock: any TokenClock) throws -> AccountLock? {
    if let facts = OATHAccounts.Metadata(account) { return try facts.lock(isTamperedWith: { isTamperedWith }) }
    guard try isAtAM(account) else { return nil }
    return try PingAM.lock(
      of: account, hasPIN: try hasPIN(account, clock), isTamperedWith: { isTamperedWith })
  }

  /// The lock of an account for lists. Nil also if the account record cannot be read.
  func lock(ifReadable account: AccountID, _ clock: any TokenClock) -> AccountLock? {
    guard let record = try? self.account(account) else { return nil }
    return try? lock(of: record, clock)
  }

  /// - Throws: `LockError` if the account is locked.
  func requireUnlocked(_ account: AccountRecord, _ clock: any TokenClock) throws {
    if let lock = try lock(of: account, clock) { throw LockError.locked(account.id, lock) }
  }

  /// Locks an account on the user's command.
  /// - Parameter policy: one of the policies that AM attached to the account; nil for accounts of other servers.
  func lockManually(_ name: String, with policy: String?, _ clock: any TokenClock) throws -> AccountRecord {
    let detail = policy.map { "with the policy \($0.sanitized)" } ?? ""
    return try changeLock(of: name, .locked, detail, clock) { account in
      guard var facts = OATHAccounts.Metadata(account) else {
        return try PingAM.lockedManually(
          account, with: policy, hasPIN: try hasPIN(account, clock), isTamperedWith: { isTamperedWith })
      }
      guard policy == nil else {
        throw CommandError(.usage, "account \(account.id) is not at PingAM: it is locked without --policy")
      }
      if let lock = try lock(of: account, clock) { throw LockError.lockedAlready(lock) }
      facts.isLocked = true
      return account.with(facts.encoded)
    }
  }

  /// Removes a lock that the user set. A policy that does not hold keeps the account locked.
  func unlockManually(_ name: String, _ clock: any TokenClock) throws -> AccountRecord {
    try changeLock(of: name, .unlocked, "", clock) { account in
      guard var facts = OATHAccounts.Metadata(account) else {
        return try PingAM.unlockedManually(
          account, hasPIN: try hasPIN(account, clock), isTamperedWith: { isTamperedWith })
      }
      try LockError.requireManual(try lock(of: account, clock))
      facts.isLocked = false
      return account.with(facts.encoded)
    }
  }

  /// Applies `body` to the account as a compare-and-swap: the running service may write to the account at the same
  /// time.
  private func changeLock(
    of name: String, _ kind: AuditEntry.Kind, _ detail: String, _ clock: any TokenClock,
    _ body: (AccountRecord) throws -> AccountRecord
  ) throws -> AccountRecord {
    let id = AccountID(name)
    let entry = AuditEntry(kind, account: id, detail: detail, wallClockMilliseconds: clock.wallClockMilliseconds)
    let changed = try update(id, noting: entry) { account in
      try requireLockable(account)
      return try body(account)
    }
    guard let changed else {
      throw CommandError(.usage, "no account \"\(name)\"; `approval-token accounts` lists the accounts")
    }
    return changed
  }

  private func requireLockable(_ account: AccountRecord) throws {
    guard try OATHAccounts.holds(account) || isAtAM(account) else {
      throw CommandError(
        .usage, "account \(account.id) cannot be locked: only accounts of PingAM and for one-time passwords can")
    }
    guard account.stage == .active else {
      throw CommandError(.refused, "account \(account.id) is not active, so it cannot be used or locked")
    }
  }

  private func isAtAM(_ account: AccountRecord) throws -> Bool {
    try servers().contains { $0.id == account.server && $0.kind == PingAM.kind }
  }

  private func hasPIN(_ account: AccountRecord, _ clock: any TokenClock) throws -> Bool {
    try pinStatus(of: account.id, clock: clock) != nil
  }
}
