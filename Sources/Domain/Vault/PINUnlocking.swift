// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import PINProtection
import SQLite
package import Secrets

/// Verification of PINs by this token. Order of an attempt: enforce the wait, count the attempt, check that the count
/// is in storage, and only then verify the PIN. A right PIN clears the count with the next transaction, which usually
/// is the decision's. A crash or power loss between the two costs an attempt, but never the account of a right PIN,
/// except while the last allowed attempt is verified.
extension Vault {
  /// Verifies a PIN and decrypts the account's keys. If the PIN is right, its count is cleared for this vault; in
  /// storage with the next transaction or `flush`, or at once if it was the last allowed attempt.
  /// - Parameter environment: for the wait and the audit entry.
  /// - Throws: `.notFound` if the account has no PIN here; `.corrupt` also if a stored count is missing.
  package func unlock(
    _ account: AccountID, with pin: PIN, in environment: TokenEnvironment
  ) throws(StateStoreError) -> PINUnlockResult {
    switch try attempt(account, pin, environment) {
    case .over(let result): return result
    case .right(let counted, let opened):
      try clear(counted)
      return .unlocked(opened)
    }
  }

  /// Completes a correct attempt. If another attempt was counted since, its count is not cleared.
  func clear(_ counted: PINRecord) throws(StateStoreError) {
    enqueue(.clearing(counted))
    // With this count in storage, the next attempt would wipe the account.
    if counted.failures >= counted.limit { try flush() }
  }

  /// A counted attempt; if the PIN was correct, its count is not cleared yet.
  enum Attempt {
    case right(PINRecord, SecretBytes)
    case over(PINUnlockResult)
  }

  func attempt(_ account: AccountID, _ pin: PIN, _ environment: TokenEnvironment) throws(StateStoreError) -> Attempt {
    let counted: PINRecord
    switch try count(account, environment) {
    case .counted(let record): counted = record
    case .refused(let result): return .over(result)
    }
    let (stored, commitment) = try readUncached { connection in
      (try PINRecord.find(account, on: connection, keys), try pinCommitment(of: account, on: connection))
    }
    guard stored == counted else { throw .corrupt(.pinCount(of: account)) }
    let opened = try mappingStateStoreErrors { try counted.sealedKeys(keys).open(with: pin, binding: keys.pinBinding) }
    guard let opened else { return .over(try foundWrong(counted, environment)) }
    let bound = try bind(opened, of: counted, to: commitment, pin)
    return .right(bound.record, bound.keys)
  }

  private enum Counting {
    case counted(PINRecord)
    case refused(PINUnlockResult)

    var isWiped: Bool { if case .refused(.wiped) = self { true } else { false } }
  }

  private func count(_ account: AccountID, _ environment: TokenEnvironment) throws(StateStoreError) -> Counting {
    let now = environment.now
    return try transaction(erasingAfter: \.isWiped) { connection in
      var record = try PINRecord.read(account, from: connection, keys)
      guard record.failures < record.limit else {
        try wipe(record, "the last of \(record.limit) attempts was interrupted", environment, on: connection)
        return Counting.refused(.wiped)
      }
      let wait = waits.remaining(for: account, failures: record.failures, now: now)
      guard wait <= .zero else { return Counting.refused(.mustWait(wait)) }
      record.failures += 1
      try record.write(to: connection, keys)
      return Counting.counted(record)
    }
  }

  private func foundWrong(_ counted: PINRecord, _ environment: TokenEnvironment) throws(StateStoreError)
    -> PINUnlockResult
  {
    let isLast = counted.failures >= counted.limit
    try transaction(erasing: isLast) { connection in
      guard !isLast else {
        return try wipe(counted, "\(counted.limit) wrong PINs", environment, on: connection)
      }
      let detail = "\(counted.failures) of \(counted.limit)"
      let entry = environment.auditEntry(.pinWrong, account: counted.account, detail: detail)
      try append(entry, on: connection)
    }
    if isLast { return .wiped }
    let wait = waits.remaining(for: counted.account, failures: counted.failures, now: environment.now)
    return .wrong(counted.counts, wait: wait)
  }

  /// Returns the record if it is unchanged; nil if another attempt was counted or another PIN was set.
  /// - Throws: `.notFound` if the account was wiped since.
  func unchanged(_ counted: PINRecord, on connection: borrowing Connection) throws -> PINRecord? {
    let record = try PINRecord.read(counted.account, from: connection, keys)
    return record == counted ? record : nil
  }

  private func wipe(
    _ record: PINRecord, _ why: String, _ environment: TokenEnvironment, on connection: borrowing Connection
  ) throws {
    let entry = environment.auditEntry(.wiped, account: record.account, detail: why)
    try wipe(account: record.account, entry, on: connection)
  }
}
