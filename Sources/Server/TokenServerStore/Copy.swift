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

  /// Copies all rows into an empty database, in one transaction, and compares them there before it is committed. What
  /// concerns only a running server is left out.
  /// - Parameter report: called after each table with its number of rows.
  /// - Returns: the number of rows of each table.
  /// - Throws: `CopyError`; nothing is copied then.
  package func copy(
    to target: Store, report: @escaping @Sendable (_ table: String, _ rows: Int) -> Void
  ) async throws -> [String: Int] {
    let rows = try await read { database in
      try Self.tables.map {
        (table: $0, rows: try database.rows("SELECT \(Self.columns(of: $0)) FROM \($0)").map(StoredRow.init))
      }
    }
    return try await target.write { database in
      var counts: [String: Int] = [:]
      for (table, rows) in rows {
        guard try database.row("SELECT 1 FROM \(table) LIMIT 1") == nil else {
          throw CopyError(description: "the table \(table) of the new database is not empty")
        }
        for row in rows { try database.insert(row, into: table) }
        let names = rows.first?.names ?? []
        let columns = names.isEmpty ? "*" : names.joined(separator: ", ")
        let copies = try database.rows("SELECT \(columns) FROM \(table)").map(StoredRow.init)
        guard Set(copies) == Set(rows), copies.count == rows.count else {
          throw CopyError(description: "the copy of the table \(table) differs from the original")
        }
        counts[table.replacing("\"", with: "")] = rows.count
        report(table, rows.count)
      }
      return counts
    }
  }
}

/// The columns of a row, for a copy.
private struct StoredRow: Sendable, Hashable {
  let names: [String]
  let values: [SQLValue]

  init(_ row: any SQLRow) {
    let columns = row.columns
    names = columns.map(\.name)
    values = columns.map(\.value)
  }
}

extension Database {
  fileprivate func insert(_ row: StoredRow, into table: String) throws {
    // Names of tables and columns are those of the schema, never of a request.
    let places = row.names.map { _ in "?" }.joined(separator: ", ")
    try run("INSERT INTO \(table) (\(row.names.joined(separator: ", "))) VALUES (\(places))", row.values)
  }
}
