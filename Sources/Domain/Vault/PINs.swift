// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import MobileAuth
import PINProtection
import SQLite
package import Secrets

/// The state of an account's PIN.
package struct PINStatus: Sendable, Equatable {
  package let counts: FailureCounts
  /// The remaining delay before the next PIN is verified.
  package let wait: Duration
}

extension Vault {
  /// Encrypts the account's keys with a key derived from a PIN that this token verifies, replacing an earlier PIN, and
  /// stores that the account has it. The caller has checked the PIN against the policy.
  /// - Parameters:
  ///   - keys: the account's keys. The caller must delete every other copy on the token.
  ///   - limit: the attempt limit: the number of wrong PINs in a row that wipes the account, 1 to 10.
  ///   - environment: for the audit entry.
  /// - Throws: `.notFound` if there is no such account.
  package func setPIN(
    of account: AccountID, to pin: PIN, keys: SecretBytes, limit: Int, parameters: Scrypt.Parameters,
    in environment: TokenEnvironment
  ) throws(StateStoreError) {
    precondition(PINRecord.limits.contains(limit), "a limit of \(limit) wrong PINs")
    let ciphertext = try sealedBytes(of: keys, under: pin, for: account, parameters)
    try transaction(erasing: true) { connection in
      guard var record = try self.account(account, on: connection) else {
        throw StateStoreError.notFound(.account(account))
      }
      record.pin = PINMetadata(.token, length: pin.count)
      try put(record, committingTo: Self.commitment(to: keys), on: connection)
      try PINRecord(account: account, limit: limit, failures: 0, sealedBytes: ciphertext).write(
        to: connection, self.keys)
      try append(
        environment.auditEntry(.pinSet, account: account), on: connection)
    }
  }

  /// Changes the PIN. Counts as an attempt with the old PIN. After any result, including a crash, exactly one of the
  /// two PINs is valid, unless the account was wiped.
  /// - Returns: `.unlocked` if the PIN was changed.
  package func changePIN(
    of account: AccountID, from old: PIN, to new: PIN, parameters: Scrypt.Parameters, in environment: TokenEnvironment
  ) throws(StateStoreError) -> PINUnlockResult {
    switch try attempt(account, old, environment) {
    case .over(let result): return result
    case .right(let counted, let opened):
      do throws(StateStoreError) {
        let ciphertext = try sealedBytes(of: opened, under: new, for: account, parameters)
        try transaction(erasing: true) { try replace(counted, with: ciphertext, environment, on: $0) }
      } catch {
        // The old PIN was right: a lack of memory or storage does not cost the attempt.
        try? clear(counted)
        throw error
      }
      return .unlocked(opened)
    }
  }

  private func replace(
    _ counted: PINRecord, with ciphertext: [UInt8], _ environment: TokenEnvironment, on connection: borrowing Connection
  ) throws {
    guard var record = try unchanged(counted, on: connection) else {
      throw StateStoreError.conflict(.pin(of: counted.account), .changedMeanwhile)
    }
    record.failures = 0
    record.sealedBytes = ciphertext
    try record.write(to: connection, keys)
    try append(
      environment.auditEntry(.pinChanged, account: counted.account),
      on: connection)
  }

  /// Returns nil if the account has no PIN that this token verifies. The first call after a start begins the delay.
  package func pinStatus(of account: AccountID, in environment: TokenEnvironment) throws(StateStoreError) -> PINStatus?
  {
    let cleared = clearedSoon
    guard var record = try snapshot({ try PINRecord.find(account, on: $0, keys) }) else { return nil }
    if cleared.contains(record) { record.failures = 0 }
    let wait = waits.remaining(for: account, failures: record.failures, now: environment.now)
    return PINStatus(counts: record.counts, wait: max(.zero, wait))
  }

  func sealedBytes(
    of keys: SecretBytes, under pin: PIN, for account: AccountID, _ parameters: Scrypt.Parameters
  ) throws(StateStoreError) -> [UInt8] {
    try mappingStateStoreErrors {
      let sealed = try SealedKeys.seal(keys, under: pin, binding: self.keys.pinBinding, parameters: parameters)
      return try PINRecord.sealedBytes(of: sealed, for: account, self.keys)
    }
  }
}
