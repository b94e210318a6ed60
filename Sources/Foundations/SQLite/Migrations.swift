// SPDX-License-Identifier: Apache-2.0
import CSQLite

extension Connection {
  /// Migrates the file from its format (`user_version`, 0 for a new file) to the newest one, in one transaction.
  /// - Parameter steps: the first migrates an empty file to format 1, the second format 1 to format 2, and so on.
  /// - Throws: `SQLiteError` also if the format is newer than the last step; the file is then unchanged.
  package func migrate(_ steps: [(borrowing Connection) throws -> Void]) throws {
    // Check without the write lock first: usually no migration is needed.
    guard try formatVersion() != steps.count else { return }
    try transaction { connection in
      let version = try connection.formatVersion()
      guard version >= 0, version <= steps.count else {
        throw SQLiteError(
          call: "migrate", code: SQLITE_SCHEMA,
          message: "the file has format \(version), this program knows formats up to \(steps.count)")
      }
      for step in steps[version...] { try step(connection) }
      try connection.execute("PRAGMA user_version = \(steps.count)")
    }
  }

  /// - Throws: `SQLiteError` if the file has an older format.
  package func requireFormat(from oldest: Int) throws {
    let version = try formatVersion()
    guard version >= oldest else {
      throw SQLiteError(
        call: "open", code: SQLITE_SCHEMA,
        message:
          "the file has format \(version), this program reads formats from \(oldest) on; `approval-token serve` "
          + "migrates older ones")
    }
  }

  /// The format of the file; 0 for a new one.
  package func formatVersion() throws -> Int {
    try rows("PRAGMA user_version") { Int(try $0.integer(0)) }.first ?? 0
  }
}
