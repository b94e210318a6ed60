// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import MobileAuth
import SQLite
import Secrets

/// The parameters of an account's one-time passwords, without the secret.
package struct OneTimePasswordSetup: Sendable, Equatable {
  package enum Factor: Sendable, Equatable {
    /// The counter of the next code (RFC 4226).
    case counter(Int64)
    /// The validity period of a code in seconds, at least 1 (RFC 6238).
    case period(Int64)
  }

  package var algorithm: OneTimePassword.Algorithm
  /// 6 or 8.
  package var digits: Int
  package var factor: Factor

  package init(algorithm: OneTimePassword.Algorithm, digits: Int, factor: Factor) {
    self.algorithm = algorithm
    self.digits = digits
    self.factor = factor
  }
}

/// One account's one-time passwords. The MAC covers the whole row, so a counter that was changed is detected.
struct OneTimePasswordRecord {
  let account: AccountID
  var setup: OneTimePasswordSetup
  /// The encrypted secret; empty if the secret is encrypted with a PIN-derived key instead.
  var sealedBytes: [UInt8]

  var isUnderPIN: Bool { sealedBytes.isEmpty }

  static func associatedData(of account: AccountID) -> CanonicalBytes {
    CanonicalBytes("one_time_passwords", account.text)
  }

  private static let columns = "account, algorithm, digits, period, counter, box, mark"

  static func find(
    _ account: AccountID, on connection: borrowing Connection, _ keys: VaultKeys
  ) throws -> OneTimePasswordRecord? {
    try connection.rows("SELECT \(columns) FROM one_time_passwords WHERE account = ?", account.text) {
      try OneTimePasswordRecord($0, keys)
    }.first
  }

  /// Without those that are damaged.
  static func all(on connection: borrowing Connection, _ keys: VaultKeys) throws -> [OneTimePasswordRecord] {
    try connection.rows("SELECT \(columns) FROM one_time_passwords ORDER BY account") { row in
      try unlessDamaged { try OneTimePasswordRecord(row, keys) }
    }.compactMap(\.self)
  }

  init(account: AccountID, setup: OneTimePasswordSetup, ciphertext: [UInt8]) {
    self.account = account
    self.setup = setup
    self.sealedBytes = ciphertext
  }

  private init(_ row: borrowing Row, _ keys: VaultKeys) throws {
    account = AccountID(try row.text(0))
    let damaged = StateStoreError.corrupt(.oneTimePasswords(of: account))
    guard let algorithm = OneTimePassword.Algorithm(rawValue: try row.text(1)) else { throw damaged }
    let (digits, period, counter) = (Int(clamping: try row.integer(2)), try row.integer(3), try row.integer(4))
    setup = OneTimePasswordSetup(
      algorithm: algorithm, digits: digits, factor: period == 0 ? .counter(counter) : .period(period))
    sealedBytes = try row.blob(5)
    guard keys.isValidMAC(try row.blob(6), of: canonical), OneTimePassword.digits.contains(digits), period >= 0,
      counter >= 0
    else {
      throw damaged
    }
  }

  func write(to connection: borrowing Connection, _ keys: VaultKeys) throws {
    try connection.run(
      """
      INSERT INTO one_time_passwords (\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET algorithm = excluded.algorithm, digits = excluded.digits,
        period = excluded.period, counter = excluded.counter, box = excluded.box, mark = excluded.mark
      """, account.text, setup.algorithm.rawValue, Int64(setup.digits), period, counter, sealedBytes,
      keys.mac(canonical))
  }

  /// 0 for a counter-based credential.
  private var period: Int64 { if case .period(let seconds) = setup.factor { seconds } else { 0 } }
  private var counter: Int64 { if case .counter(let count) = setup.factor { count } else { 0 } }

  private var canonical: CanonicalBytes {
    var bytes = CanonicalBytes("one_time_passwords", account.text, setup.algorithm.rawValue)
    for number in [Int64(setup.digits), period, counter] { bytes.add(number) }
    bytes.add(sealedBytes)
    return bytes
  }
}
