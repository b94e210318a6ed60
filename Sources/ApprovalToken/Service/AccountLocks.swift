import MobileAuth
import PingAMAdapter
import Vault

/// What keeps an account from being used: a person's own lock, or a policy that does not hold.
extension Vault {
  /// Nil for an account that can be used, and for those of servers whose accounts have no locks.
  func lock(of account: AccountRecord, _ clock: any Timekeeper) throws -> AccountLock? {
    if let facts = OATHAccounts.Facts(account) { return try facts.lock(isTamperedWith: { isTamperedWith }) }
    guard try isAtAM(account) else { return nil }
    return try PingAM.lock(
      of: account, hasPIN: try hasPIN(account, clock), isTamperedWith: { isTamperedWith })
  }

  /// For lists, which tell of what can be read.
  func lock(ifReadable account: AccountID, _ clock: any Timekeeper) -> AccountLock? {
    guard let record = try? self.account(account) else { return nil }
    return try? lock(of: record, clock)
  }

  /// - Throws: `LockRefusal` if the account is locked.
  func demandUnlocked(_ account: AccountRecord, _ clock: any Timekeeper) throws {
    if let lock = try lock(of: account, clock) { throw LockRefusal.locked(account.id, lock) }
  }

  /// - Parameter policy: one of the account's at AM; other accounts are locked without.
  func lockByHand(_ name: String, with policy: String?, _ clock: any Timekeeper) throws -> AccountRecord {
    let detail = policy.map { "with the policy \($0.forPeople)" } ?? ""
    return try changeLock(of: name, .locked, detail, clock) { account in
      guard var facts = OATHAccounts.Facts(account) else {
        return try PingAM.lockedByHand(
          account, with: policy, hasPIN: try hasPIN(account, clock), isTamperedWith: { isTamperedWith })
      }
      guard policy == nil else {
        throw CommandFailure(.usage, "account \(account.id) is not at PingAM: it is locked without --policy")
      }
      if let lock = try lock(of: account, clock) { throw LockRefusal.lockedAlready(lock) }
      facts.isLocked = true
      return account.with(facts.encoded)
    }
  }

  /// A policy that does not hold locks the account all the same.
  func unlockByHand(_ name: String, _ clock: any Timekeeper) throws -> AccountRecord {
    try changeLock(of: name, .unlocked, "", clock) { account in
      guard var facts = OATHAccounts.Facts(account) else {
        return try PingAM.unlockedByHand(
          account, hasPIN: try hasPIN(account, clock), isTamperedWith: { isTamperedWith })
      }
      try LockRefusal.demandByHand(try lock(of: account, clock))
      facts.isLocked = false
      return account.with(facts.encoded)
    }
  }

  /// The running service may write to the account meanwhile.
  private func changeLock(
    of name: String, _ kind: AuditEntry.Kind, _ detail: String, _ clock: any Timekeeper,
    _ body: (AccountRecord) throws -> AccountRecord
  ) throws -> AccountRecord {
    let id = AccountID(name)
    let entry = AuditEntry(kind, account: id, detail: detail, wallClockMilliseconds: clock.wallClockMilliseconds)
    let changed = try update(id, noting: entry) { account in
      try demandLockable(account)
      return try body(account)
    }
    guard let changed else {
      throw CommandFailure(.usage, "no account \"\(name)\"; `approval-token accounts` lists them")
    }
    return changed
  }

  private func demandLockable(_ account: AccountRecord) throws {
    guard try OATHAccounts.holds(account) || isAtAM(account) else {
      throw CommandFailure(
        .usage, "account \(account.id) has no lock: only those of PingAM and those for one-time passwords have one")
    }
    guard account.stage == .active else {
      throw CommandFailure(.refused, "account \(account.id) is not active: nothing of it can be used anyway")
    }
  }

  private func isAtAM(_ account: AccountRecord) throws -> Bool {
    try servers().contains { $0.id == account.server && $0.kind == PingAM.kind }
  }

  private func hasPIN(_ account: AccountRecord, _ clock: any Timekeeper) throws -> Bool {
    try pinStatus(of: account.id, clock: clock) != nil
  }
}
