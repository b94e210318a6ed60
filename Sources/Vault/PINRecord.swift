import Cryptography
import MobileAuth
import PINProtection
import SQLite

/// One account's keys under the PIN that this token judges, and how often the PIN was wrong. The mark covers the whole
/// row: neither the count nor the limit can be edited, and no count belongs to another PIN.
struct PINRecord: Equatable {
  let account: AccountID
  /// So many wrong PINs wipe the account.
  let limit: Int
  var failures: Int
  /// `SealedKeys.encoded`, sealed as all records are.
  var box: [UInt8]

  /// NIST SP 800-63B-4 disables an authenticator after 10 in a row at the latest.
  static let limits = 1...10

  var counts: FailureCounts { FailureCounts(max: limit, previous: failures) }

  func sealedKeys(_ keys: VaultKeys) throws(CryptographyError) -> SealedKeys {
    try SealedKeys(encoded: try keys.open(box, at: Self.place(of: account)))
  }

  static func box(
    of sealed: SealedKeys, for account: AccountID, _ keys: VaultKeys
  ) throws(CryptographyError) -> [UInt8] {
    try keys.seal(sealed.encoded, at: place(of: account))
  }

  private static func place(of account: AccountID) -> CanonicalBytes { CanonicalBytes("pins", account.text) }

  /// - Throws: `.unknown` if the account has no PIN here, `.damaged` if what is there does not carry this vault's mark.
  static func read(
    _ account: AccountID, from connection: borrowing Connection, _ keys: VaultKeys
  ) throws -> PINRecord {
    guard let record = try find(account, on: connection, keys) else {
      throw CustodyFault.unknown("PIN of account \(account)")
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
        box: try row.blob(2))
      guard keys.isMark(try row.blob(3), of: record.canonical), limits.contains(record.limit),
        (0...record.limit).contains(record.failures)
      else {
        throw CustodyFault.damaged("the PIN of account \(account), or the count of wrong ones")
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
      """, account.text, Int64(limit), Int64(failures), box, keys.mark(canonical))
  }

  private var canonical: CanonicalBytes {
    var bytes = CanonicalBytes("pins", account.text)
    bytes.add(Int64(limit))
    bytes.add(Int64(failures))
    bytes.add(box)
    return bytes
  }
}
