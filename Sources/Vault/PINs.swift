// SPDX-License-Identifier: Apache-2.0
public import Cryptography
public import MobileAuth
import PINProtection
import SQLite
public import Secrets

/// The state of an account's PIN.
public struct PINStatus: Sendable, Equatable {
  public let counts: FailureCounts
  /// The remaining delay before the next PIN is verified.
  public let wait: Duration
}

extension Vault {
  /// Encrypts the account's keys with a key derived from a PIN that this token verifies, replacing an earlier PIN. The
  /// caller has checked the PIN against the policy.
  /// - Parameters:
  ///   - keys: the account's keys. The caller must delete every other copy on the token.
  ///   - limit: the attempt limit: the number of wrong PINs in a row that wipes the account, 1 to 10.
  ///   - clock: for the audit entry.
  /// - Throws: `.unknown` if there is no such account.
  public func setPIN(
    of account: AccountID, to pin: PIN, keys: SecretBytes, limit: Int, parameters: Scrypt.Parameters,
    clock: any Timekeeper
  ) throws(CustodyFault) {
    precondition(PINRecord.limits.contains(limit), "a limit of \(limit) wrong PINs")
    let box = try box(of: keys, under: pin, for: account, parameters)
    try transaction { connection in
      let known = try connection.rows("SELECT 1 FROM accounts WHERE id = ?", account.text) { try $0.integer(0) }
      guard !known.isEmpty else { throw CustodyFault.unknown("account \(account)") }
      try PINRecord(account: account, limit: limit, failures: 0, box: box).write(to: connection, self.keys)
      try append(
        AuditEntry(.pinSet, account: account, wallClockMilliseconds: clock.wallClockMilliseconds), on: connection)
    }
  }

  /// Changes the PIN. Counts as an attempt with the old PIN. After any result, including a crash, exactly one of the
  /// two PINs is valid, unless the account was wiped.
  /// - Returns: `.unlocked` if the PIN was changed.
  public func changePIN(
    of account: AccountID, from old: PIN, to new: PIN, parameters: Scrypt.Parameters, clock: any Timekeeper
  ) throws(CustodyFault) -> PINVerdict {
    switch try attempt(account, old, clock) {
    case .over(let verdict): return verdict
    case .right(let counted, let opened):
      let box = try box(of: opened, under: new, for: account, parameters)
      try transaction { connection in try replace(counted, with: box, clock, on: connection) }
      return .unlocked(opened)
    }
  }

  private func replace(
    _ counted: PINRecord, with box: [UInt8], _ clock: any Timekeeper, on connection: borrowing Connection
  ) throws {
    guard var record = try unchanged(counted, on: connection) else {
      throw CustodyFault.storage("another PIN was typed while that of account \(counted.account) was being changed")
    }
    record.failures = 0
    record.box = box
    try record.write(to: connection, keys)
    try append(
      AuditEntry(.pinChanged, account: counted.account, wallClockMilliseconds: clock.wallClockMilliseconds),
      on: connection)
  }

  /// Returns nil if the account has no PIN that this token verifies. The first call after a start begins the delay.
  public func pinStatus(of account: AccountID, clock: any Timekeeper) throws(CustodyFault) -> PINStatus? {
    guard let record = try snapshot({ try PINRecord.find(account, on: $0, keys) }) else { return nil }
    let wait = waits.remaining(for: account, failures: record.failures, now: clock.now)
    return PINStatus(counts: record.counts, wait: max(.zero, wait))
  }

  func box(
    of keys: SecretBytes, under pin: PIN, for account: AccountID, _ parameters: Scrypt.Parameters
  ) throws(CustodyFault) -> [UInt8] {
    try custodyFaults {
      let sealed = try SealedKeys.seal(keys, under: pin, binding: self.keys.pinBinding, parameters: parameters)
      return try PINRecord.box(of: sealed, for: account, self.keys)
    }
  }
}
