// SPDX-License-Identifier: Apache-2.0
public import Cryptography
public import MobileAuth
import PINProtection
import SQLite
public import Secrets

/// A one-time code for display. Valid for one login, so it must not be logged.
public struct OneTimeCode: Sendable, Equatable {
  public let digits: String
  /// The counter, or the number of the time step.
  public let factor: UInt64
  /// The code's validity in seconds since 1970, for time-based codes.
  public let validity: Range<Int64>?
}

public enum OneTimePasswordVerdict: Sendable, Equatable {
  case code(OneTimeCode)
  /// The secret is encrypted with a PIN-derived key: unlock it with the account's PIN first.
  case pinWanted
  /// The account is not active.
  case locked
  /// The board's clock is behind the earliest possible time: the code would be out of date.
  case clockBehind
  /// No code exists for this factor (see `OneTimePassword.Failure`); retry with the next one.
  case noCode
  /// The counter has reached its maximum.
  case usedUp
}

/// A PIN to set, whose derived key encrypts the secret.
public struct PINGuard: Sendable {
  public var pin: PIN
  /// The attempt limit: the number of wrong PINs in a row that wipes the account, 1 to 10.
  public var limit: Int
  public var parameters: Scrypt.Parameters

  public init(pin: PIN, limit: Int, parameters: Scrypt.Parameters) {
    self.pin = pin
    self.limit = limit
    self.parameters = parameters
  }
}

extension Vault {
  /// Stores an account with its server and one-time password credential, in one transaction.
  /// - Parameters:
  ///   - pinGuard: a PIN whose derived key encrypts the secret; it replaces the account's PIN.
  ///   - known: the account before the change; nil for a new account.
  /// - Throws: `.unknown` if the account has changed since it was read, or has a credential already: a counter is never
  ///   set back. The credential of an account whose enrollment is not complete was never used, and is replaced.
  public func keep(
    _ setup: OneTimePasswordSetup, secret: SecretBytes, of account: AccountRecord, at server: TokenServerRecord,
    under pinGuard: PINGuard? = nil, replacing known: AccountRecord? = nil, _ entry: AuditEntry?
  ) throws(CustodyFault) {
    var pin: PINRecord?
    if let pinGuard {
      precondition(PINRecord.limits.contains(pinGuard.limit), "a limit of \(pinGuard.limit) wrong PINs")
      let keys = try box(of: secret, under: pinGuard.pin, for: account.id, pinGuard.parameters)
      pin = PINRecord(account: account.id, limit: pinGuard.limit, failures: 0, box: keys)
    }
    let sealed = try custodyFaults { pin == nil ? try seal(secret, of: account.id) : [] }
    try transaction { [pin] connection in
      let kept = try self.account(account.id, on: connection)
      if let known, kept?.isSame(as: known) != true {
        throw CustodyFault.unknown("account \(account.id) in its former state: it has changed meanwhile")
      }
      let isUnfinished = kept?.stage == .enrolling
      let isFirst = try OneTimePasswordRecord.find(account.id, on: connection, keys) == nil
      guard isFirst || isUnfinished else {
        throw CustodyFault.unknown("account \(account.id) without one-time passwords: it has them already")
      }
      try put(server, on: connection)
      try put(account, on: connection)
      try pin?.write(to: connection, keys)
      try OneTimePasswordRecord(account: account.id, setup: setup, box: sealed).write(to: connection, keys)
      if let entry { try append(entry, on: connection) }
    }
  }

  /// Deletes the credential of an account whose enrollment is not complete, and the PIN that protects it. Does nothing
  /// if there is none.
  /// - Throws: `.unknown` if the enrollment is complete: codes may have been shown.
  public func dropOneTimePasswords(of account: AccountID) throws(CustodyFault) {
    try transaction { connection in
      guard let record = try OneTimePasswordRecord.find(account, on: connection, keys) else { return }
      guard try self.account(account, on: connection)?.stage == .enrolling else {
        throw CustodyFault.unknown("account \(account) whose enrollment is not complete")
      }
      try connection.run("DELETE FROM one_time_passwords WHERE account = ?", account.text)
      if record.isUnderPIN { try connection.run("DELETE FROM pins WHERE account = ?", account.text) }
    }
  }

  /// The parameters of all accounts with one-time passwords, and whether a PIN protects the secret.
  public func oneTimePasswords() throws(CustodyFault) -> [AccountID: (setup: OneTimePasswordSetup, isUnderPIN: Bool)] {
    let records = try snapshot { try OneTimePasswordRecord.all(on: $0, keys) }
    return Dictionary(uniqueKeysWithValues: records.map { ($0.account, ($0.setup, $0.isUnderPIN)) })
  }

  /// Returns the account's next code. Its counter is incremented durably before the code is returned.
  /// - Parameters:
  ///   - secret: the secret, if the account's PIN has unlocked it.
  ///   - earliest: the earliest possible time, in seconds since 1970. Times reported by token servers are not used, so
  ///     that a server cannot block the codes of other services.
  /// - Throws: `.unknown` if the account has no one-time passwords.
  public func nextOneTimePassword(
    of account: AccountID, unlocked secret: SecretBytes? = nil, clock: any Timekeeper, notBefore earliest: Int64
  ) throws(CustodyFault) -> OneTimePasswordVerdict {
    let milliseconds = clock.wallClockMilliseconds
    let isUnlocked = secret != nil
    let issued = try transaction { connection in
      try issue(account, isUnlocked: isUnlocked, at: milliseconds, notBefore: earliest, on: connection)
    }
    switch issued {
    case .refused(let verdict): return verdict
    case .allowed(let record, let factor): return try code(factor, of: record, secret)
    }
  }

  private func code(
    _ factor: UInt64, of record: OneTimePasswordRecord, _ secret: SecretBytes?
  ) throws(CustodyFault) -> OneTimePasswordVerdict {
    let opened = try custodyFaults {
      try secret ?? keys.open(record.box, at: OneTimePasswordRecord.place(of: record.account))
    }
    let setup = record.setup
    do throws(OneTimePassword.Failure) {
      let digits = try OneTimePassword.code(
        factor: factor, secret: opened, algorithm: setup.algorithm, digits: setup.digits)
      return .code(OneTimeCode(digits: digits, factor: factor, validity: setup.validity(of: factor)))
    } catch { return .noCode }
  }

  private enum Issue: Sendable {
    case allowed(OneTimePasswordRecord, factor: UInt64)
    case refused(OneTimePasswordVerdict)
  }

  private func issue(
    _ account: AccountID, isUnlocked: Bool, at milliseconds: Int64, notBefore earliest: Int64,
    on connection: borrowing Connection
  ) throws -> Issue {
    guard var record = try OneTimePasswordRecord.find(account, on: connection, keys) else {
      throw CustodyFault.unknown("one-time passwords of account \(account)")
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
    try keys.seal(secret, at: OneTimePasswordRecord.place(of: account))
  }

  /// Encrypts the credential again under the new account ID, which is part of its associated data.
  func moveOneTimePasswords(of old: AccountID, to new: AccountID, on connection: borrowing Connection) throws {
    guard let record = try OneTimePasswordRecord.find(old, on: connection, keys) else { return }
    let box =
      record.isUnderPIN ? [] : try seal(keys.open(record.box, at: OneTimePasswordRecord.place(of: old)), of: new)
    try OneTimePasswordRecord(account: new, setup: record.setup, box: box).write(to: connection, keys)
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
