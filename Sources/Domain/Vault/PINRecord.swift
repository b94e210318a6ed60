// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
import SQLite

/// An account's keys, encrypted with a PIN-derived key, and the count of wrong PIN attempts. The MAC covers the whole
/// row: neither count nor limit can be changed, and the count belongs to one PIN.
struct PINRecord: Equatable {
  let account: AccountID
  /// The attempt limit: this number of wrong PINs in a row wipes the account.
  let limit: Int
  var failures: Int
  /// `SealedKeys.encoded`, encrypted like all records.
  var sealedBytes: [UInt8]

  /// NIST SP 800-63B-4 requires disabling an authenticator after at most 10 failures in a row.
  static let limits = 1...10

  var counts: FailureCounts { FailureCounts(max: limit, previous: failures) }

  func sealedKeys(_ keys: VaultKeys) throws(CryptographyError) -> SealedKeys {
    try SealedKeys(encoded: try keys.open(sealedBytes, at: Self.associatedData(of: account)))
  }

  static func sealedBytes(
    of sealed: SealedKeys, for account: AccountID, _ keys: VaultKeys
  ) throws(CryptographyError) -> [UInt8] {
    try keys.seal(sealed.encoded, at: associatedData(of: account))
  }

  private static func associatedData(of account: AccountID) -> CanonicalBytes { CanonicalBytes("pins", account.text) }

  /// - Throws: `.notFound` if the account has no PIN here, `.corrupt` if the row's MAC is wrong.
  static func read(
    _ account: AccountID, from connection: borrowing Connection, _ keys: VaultKeys
  ) throws -> PINRecord {
    guard let record = try find(account, on: connection, keys) else {
      throw StateStoreError.notFound(.pin(of: account))
    }
    return record
  }

  static func find(
    _ account: AccountID, on connection: borrowing Connection, _ keys: VaultKeys
  ) throws -> PINRecord? {
    let found = try connection.rows(
      "SELECT max_failures, failures, box, mark FROM pins WHERE account = ?", account.text
    ) { row in
      let record = PINRecord(
        account: account, limit: Int(clamping: try row.integer(0)), failures: Int(clamping: try row.integer(1)),
        sealedBytes: try row.blob(2))
      guard keys.isValidMAC(try row.blob(3), of: record.canonical), limits.contains(record.limit),
        (0...record.limit).contains(record.failures)
      else {
        throw StateStoreError.corrupt(.pin(of: account))
      }
      return record
    }
    return found.first
  }

  func write(to connection: borrowing Connection, _ keys: VaultKeys) throws {
    try connection.run(
      """
      INSERT INTO pins (account, max_failures, failures, box, mark) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET max_failures = excluded.max_failures, failures = excluded.failures,
        box = excluded.box, mark = excluded.mark
      """, account.text, Int64(limit), Int64(failures), sealedBytes, keys.mac(canonical))
  }

  /// Clears the count of a row that has this record. Does nothing if there is no such row.
  func clear(on connection: borrowing Connection, _ keys: VaultKeys) throws {
    var cleared = self
    cleared.failures = 0
    try connection.run(
      "UPDATE pins SET failures = 0, mark = ? WHERE account = ? AND failures = ? AND mark = ?",
      keys.mac(cleared.canonical), account.text, Int64(failures), keys.mac(canonical))
  }

  private var canonical: CanonicalBytes {
    var bytes = CanonicalBytes("pins", account.text)
    bytes.add(Int64(limit))
    bytes.add(Int64(failures))
    bytes.add(sealedBytes)
    return bytes
  }
}
