public import MobileAuth
import PINProtection
import SQLite
public import Secrets

/// What came of one PIN.
public enum PINVerdict: Sendable {
  /// The account's keys, for as long as they are needed.
  case unlocked(SecretBytes)
  /// It was counted; the next one has to wait so long.
  case wrong(FailureCounts, wait: Duration)
  /// It was the last that was allowed: nothing about the account is left.
  case wiped
  /// Too soon after a wrong one: nothing was tried or counted.
  case mustWait(Duration)
}

/// PINs that this token judges itself. The order is that of careful wallets: wait, count, see that the count is on the
/// card, and only then look at the PIN. Whatever cuts in after the count has cost an attempt.
extension Vault {
  /// - Parameter clock: for the wait, and for the audit line.
  /// - Throws: `.unknown` if the account has no PIN here; `.damaged` also if a count was written and is not there.
  public func unlock(
    _ account: AccountID, with pin: PIN, clock: any Timekeeper
  ) throws(CustodyFault) -> PINVerdict {
    switch try attempt(account, pin, clock) {
    case .over(let verdict): return verdict
    case .right(let counted, let opened):
      try clear(counted)
      return .unlocked(opened)
    }
  }

  /// Ends a right attempt. If another was counted meanwhile, it does not give that one back.
  func clear(_ counted: PINRecord) throws(CustodyFault) {
    try transaction { connection in
      guard var record = try unchanged(counted, on: connection) else { return }
      record.failures = 0
      try record.write(to: connection, keys)
    }
  }

  /// An attempt that is counted, and not cleared yet if the PIN was right.
  enum Attempt {
    case right(PINRecord, SecretBytes)
    case over(PINVerdict)
  }

  func attempt(_ account: AccountID, _ pin: PIN, _ clock: any Timekeeper) throws(CustodyFault) -> Attempt {
    let counted: PINRecord
    switch try count(account, clock) {
    case .counted(let record): counted = record
    case .refused(let verdict): return .over(verdict)
    }
    guard try freshly({ try PINRecord.find(account, on: $0, keys) }) == counted else {
      throw .damaged("the count of wrong PINs of account \(account) was written, and is not there")
    }
    let opened = try custodyFaults { try counted.sealedKeys(keys).open(with: pin, binding: keys.pinBinding) }
    guard let opened else { return .over(try foundWrong(counted, clock)) }
    return .right(counted, opened)
  }

  private enum Counting {
    case counted(PINRecord)
    case refused(PINVerdict)
  }

  private func count(_ account: AccountID, _ clock: any Timekeeper) throws(CustodyFault) -> Counting {
    let now = clock.now
    return try transaction { connection in
      var record = try PINRecord.read(account, from: connection, keys)
      guard record.failures < record.limit else {
        try wipe(record, "the last PIN of \(record.limit) was cut off before it was judged", clock, on: connection)
        return .refused(.wiped)
      }
      let wait = waits.remaining(for: account, failures: record.failures, now: now)
      guard wait <= .zero else { return .refused(.mustWait(wait)) }
      record.failures += 1
      try record.write(to: connection, keys)
      return .counted(record)
    }
  }

  private func foundWrong(_ counted: PINRecord, _ clock: any Timekeeper) throws(CustodyFault) -> PINVerdict {
    let isLast = counted.failures >= counted.limit
    try transaction { connection in
      guard !isLast else {
        return try wipe(counted, "\(counted.limit) wrong PINs", clock, on: connection)
      }
      let detail = "\(counted.failures) of \(counted.limit)"
      let entry = AuditEntry(
        .pinWrong, account: counted.account, detail: detail, wallClockMilliseconds: clock.wallClockMilliseconds)
      try append(entry, on: connection)
    }
    if isLast { return .wiped }
    let wait = waits.remaining(for: counted.account, failures: counted.failures, now: clock.now)
    return .wrong(counted.counts, wait: wait)
  }

  /// The record, if it is still as it was; nil if another attempt was counted or another PIN set.
  /// - Throws: `.unknown` if the account was wiped meanwhile.
  func unchanged(_ counted: PINRecord, on connection: borrowing Connection) throws -> PINRecord? {
    let record = try PINRecord.read(counted.account, from: connection, keys)
    return record == counted ? record : nil
  }

  private func wipe(
    _ record: PINRecord, _ why: String, _ clock: any Timekeeper, on connection: borrowing Connection
  ) throws {
    let entry = AuditEntry(
      .wiped, account: record.account, detail: why, wallClockMilliseconds: clock.wallClockMilliseconds)
    try wipe(account: record.account, entry, on: connection)
  }
}
