// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

package struct CopyError: Error, Equatable, CustomStringConvertible {
  package let description: String
}

extension Store {
  /// All tables, in an order in which each refers only to earlier ones.
  private static let tables = [
    #""user""#, "device", "server_key", "profile", "api_client", "activation_code", "fleet_token", "access_token",
    "mobile_auth_transaction", "verdict", "callback", "set_aside", "hold", "knowledge", "pin_attempt", "pin_change",
    "authenticator", "authenticator_attempt",
  ]

  /// The number of a row that was set aside is not copied: the database numbers them.
  private static func columns(of table: String) -> String {
    table == "set_aside" ? "table_name, columns, why, at_ms" : "*"
  }

  /// Copies all rows of a SQLite file into an empty database, in one transaction. The database returns each row as it
  /// has stored it, for a comparison with the original; before the end the rows are counted. What concerns only a
  /// running server is left out. The rows are not held in memory.
  /// - Parameter report: called after each table with its number of rows.
  /// - Returns: the number of rows of each table.
  /// - Throws: `CopyError`; nothing is copied then.
  package func copy(
    to target: Store, report: @escaping @Sendable (_ table: String, _ rows: Int) -> Void
  ) async throws -> [String: Int] {
    guard let file = database as? SQLiteDatabase else {
      throw CopyError(description: "only a SQLite database can be copied")
    }
    return try await target.write { copy in
      try file.snapshot { original in
        var counts: [String: Int] = [:]
        for table in Self.tables {
          let count = try Self.copy(table, from: original, to: copy)
          counts[table.replacing("\"", with: "")] = count
          report(table, count)
        }
        return counts
      }
    }
  }

  /// - Returns: the number of rows.
  private static func copy(_ table: String, from original: any SQLTransaction, to copy: Database) throws -> Int {
    guard try copy.row("SELECT 1 FROM \(table) LIMIT 1") == nil else {
      throw CopyError(description: "the table \(table) of the new database is not empty")
    }
    let difference = CopyError(description: "the copy of the table \(table) differs from the original")
    var count = 0
    try original.query("SELECT \(columns(of: table)) FROM \(table)", []) { row in
      let row = StoredRow(row)
      guard try copy.insert(row, into: table) == row else { throw difference }
      count += 1
      return true
    }
    guard try copy.row("SELECT COUNT(*) AS count FROM \(table)")?.count("count") == count else {
      throw difference
    }
    return count
  }
}

/// The columns of a row, for a copy.
private struct StoredRow: Equatable {
  let names: [String]
  let values: [SQLValue]

  init(_ row: any SQLRow) {
    let columns = row.columns
    names = columns.map(\.name)
    values = columns.map(\.value)
  }
}

extension Database {
  /// - Returns: the row as it was stored.
  fileprivate func insert(_ row: StoredRow, into table: String) throws -> StoredRow? {
    // Names of tables and columns are those of the schema, never of a request.
    let columns = row.names.joined(separator: ", ")
    let places = row.names.map { _ in "?" }.joined(separator: ", ")
    return try self.row("INSERT INTO \(table) (\(columns)) VALUES (\(places)) RETURNING \(columns)", row.values)
      .map(StoredRow.init)
  }
}
