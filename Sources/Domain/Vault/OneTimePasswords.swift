// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth
package import PINProtection
import SQLite
package import Secrets

/// A one-time code for display. Valid for one login, so it must not be logged.
package struct OneTimeCode: Sendable, Equatable {
  package let digits: String
  /// The counter, or the number of the time step.
  package let factor: UInt64
  /// The code's validity in seconds since 1970, for time-based codes.
  package let validity: Range<Int64>?
}

package enum OneTimePasswordResult: Sendable, Equatable {
  case code(OneTimeCode)
  /// The secret is encrypted with a PIN-derived key: unlock it with the account's PIN first.
  case pinWanted
  /// The account is not active.
  case locked
  /// The board's clock is behind the earliest possible time: the code would be out of date.
  case clockBehind
  /// No code exists for this factor (see `OneTimePassword.GenerationError`); retry with the next one.
  case noCode
  /// The counter has reached its maximum.
  case usedUp
}

extension Vault {
  /// Stores an account with its server and one-time password credential, in one transaction.
  /// - Parameters:
  ///   - setting: a PIN whose derived key encrypts the secret; it replaces the account's PIN.
  ///   - known: the account before the change; nil for a new account.
  /// - Throws: `.conflict` if the account has changed since it was read, or has a credential already: a counter is
  ///   never set back. The credential of an account whose enrollment is not complete was never used, and is replaced.
  package func store(
    _ setup: OneTimePasswordSetup, secret: SecretBytes, of account: AccountRecord, at server: TokenServerRecord,
    under setting: PINSetting? = nil, replacing known: AccountRecord? = nil, _ entry: AuditEntry?
  ) throws(StateStoreError) {
    var pin: PINRecord?
    if let setting {
      precondition(PINRecord.limits.contains(setting.limit), "a limit of \(setting.limit) wrong PINs")
      let keys = try sealedBytes(of: secret, under: setting.pin, for: account.id, setting.parameters)
      pin = PINRecord(account: account.id, limit: setting.limit, failures: 0, sealedBytes: keys)
    }
    let sealed = try mappingStateStoreErrors { pin == nil ? try seal(secret, of: account.id) : [] }
    try transaction(erasing: true) { [pin] connection in
      let kept = try self.account(account.id, on: connection)
      if let known, kept?.isSame(as: known) != true {
        throw StateStoreError.conflict(.account(account.id), .changedMeanwhile)
      }
      let isUnfinished = kept?.stage == .enrolling
      let isFirst = try OneTimePasswordRecord.find(account.id, on: connection, keys) == nil
      guard isFirst || isUnfinished else {
        throw StateStoreError.conflict(.oneTimePasswords(of: account.id), .exists)
      }
      try put(server, on: connection)
      try put(account, committingTo: pin.map { _ in Self.commitment(to: secret) }, on: connection)
      try pin?.write(to: connection, keys)
      try OneTimePasswordRecord(account: account.id, setup: setup, ciphertext: sealed).write(to: connection, keys)
      if let entry { try append(entry, on: connection) }
    }
  }

  /// Deletes the credential of an account whose enrollment is not complete, and the PIN that protects it. Does nothing
  /// if there is none.
  /// - Throws: `.conflict` if the enrollment is complete: codes may have been shown.
  package func dropOneTimePasswords(of account: AccountID) throws(StateStoreError) {
    try transaction(erasing: true) { connection in
      guard let record = try OneTimePasswordRecord.find(account, on: connection, keys) else { return }
      guard var kept = try self.account(account, on: connection), kept.stage == .enrolling else {
        throw StateStoreError.conflict(.account(account), .enrolled)
      }
      try connection.run("DELETE FROM one_time_passwords WHERE account = ?", account.text)
      guard record.isUnderPIN else { return }
      try connection.run("DELETE FROM pins WHERE account = ?", account.text)
      guard kept.pin != nil else { return }
      kept.pin = nil
      try put(kept, on: connection)
    }
  }

  /// The accounts with one-time passwords, also with damaged ones.
  package func accountsWithOneTimePasswords() throws(StateStoreError) -> Set<AccountID> {
    Set(
      try snapshot { connection in
        try connection.rows("SELECT account FROM one_time_passwords") { AccountID(try $0.text(0)) }
      })
  }

  /// The parameters of the accounts with one-time passwords, and whether a PIN protects the secret. Without those that
  /// are damaged.
  package func oneTimePasswords() throws(StateStoreError) -> [AccountID: (
    setup: OneTimePasswordSetup, isUnderPIN: Bool
  )] {
    let records = try snapshot { try OneTimePasswordRecord.all(on: $0, keys) }
    return Dictionary(records.map { ($0.account, ($0.setup, $0.isUnderPIN)) }) { first, _ in first }
  }

  /// Returns the account's next code. Its counter is incremented durably before the code is returned.
  /// - Parameters:
  ///   - secret: the secret, if the account's PIN has unlocked it.
  ///   - earliest: the earliest possible time, in seconds since 1970. Times reported by token servers are not used, so
  ///     that a server cannot block the codes of other services.
  /// - Throws: `.notFound` if the account has no one-time passwords.
  package func nextOneTimePassword(
    of account: AccountID, unlocked secret: SecretBytes? = nil, in environment: TokenEnvironment,
    notBefore earliest: Int64
  ) throws(StateStoreError) -> OneTimePasswordResult {
    let milliseconds = environment.wallClockMilliseconds
    let isUnlocked = secret != nil
    let issued = try transaction { connection in
      try issue(account, isUnlocked: isUnlocked, at: milliseconds, notBefore: earliest, on: connection)
    }
    switch issued {
    case .refused(let result): return result
    case .allowed(let record, let factor): return try code(factor, of: record, secret)
    }
  }

  private func code(
    _ factor: UInt64, of record: OneTimePasswordRecord, _ secret: SecretBytes?
  ) throws(StateStoreError) -> OneTimePasswordResult {
    let opened = try mappingStateStoreErrors {
      try secret ?? keys.open(record.sealedBytes, at: OneTimePasswordRecord.associatedData(of: record.account))
    }
    let setup = record.setup
    do throws(OneTimePassword.GenerationError) {
      let digits = try OneTimePassword.code(
        factor: factor, secret: opened, algorithm: setup.algorithm, digits: setup.digits)
      return .code(OneTimeCode(digits: digits, factor: factor, validity: setup.validity(of: factor)))
    } catch { return .noCode }
  }

  private enum Issue: Sendable {
    case allowed(OneTimePasswordRecord, factor: UInt64)
    case refused(OneTimePasswordResult)
  }

  private func issue(
    _ account: AccountID, isUnlocked: Bool, at milliseconds: Int64, notBefore earliest: Int64,
    on connection: borrowing Connection
  ) throws -> Issue {
    guard var record = try OneTimePasswordRecord.find(account, on: connection, keys) else {
      throw StateStoreError.notFound(.oneTimePasswords(of: account))
    }
    guard try self.account(account, on: connection)?.stage == .active else { return .refused(.locked) }
    guard isUnlocked == record.isUnderPIN else { return .refused(.pinWanted) }
    let factor: UInt64
    switch record.setup.factor {
    case .counter(let counter):
      guard counter < .max else { return .refused(.usedUp) }
      factor = UInt64(counter)
      record.setup.factor = .counter(counter + 1)
      try record.write(to: connection, keys)
    case .period(let period):
      let now = min(milliseconds / 1000, KnownTime.latest)
      guard now >= earliest else { return .refused(.clockBehind) }
      factor = UInt64(max(0, now) / period)
    }
    let entry = AuditEntry(
      .codeShown, account: account, detail: "number \(factor)", wallClockMilliseconds: milliseconds)
    try append(entry, on: connection)
    return .allowed(record, factor: factor)
  }

  func seal(_ secret: SecretBytes, of account: AccountID) throws(CryptographyError) -> [UInt8] {
    try keys.seal(secret, at: OneTimePasswordRecord.associatedData(of: account))
  }

  /// Encrypts the credential again under the new account ID, which is part of its associated data.
  func moveOneTimePasswords(of old: AccountID, to new: AccountID, on connection: borrowing Connection) throws {
    guard let record = try OneTimePasswordRecord.find(old, on: connection, keys) else { return }
    let ciphertext =
      record.isUnderPIN
      ? [] : try seal(keys.open(record.sealedBytes, at: OneTimePasswordRecord.associatedData(of: old)), of: new)
    try OneTimePasswordRecord(account: new, setup: record.setup, ciphertext: ciphertext).write(to: connection, keys)
  }
}

extension OneTimePasswordSetup {
  fileprivate func validity(of factor: UInt64) -> Range<Int64>? {
    guard case .period(let seconds) = self.factor else { return nil }
    // The factor is a time before the year 10000 divided by the period. The products fit 64 bits, except at very long
    // periods.
    let (begin, end) = (Int64(factor) * seconds, (Int64(factor) + 1).multipliedReportingOverflow(by: seconds))
    return begin..<(end.overflow ? .max : end.partialValue)
  }
}
