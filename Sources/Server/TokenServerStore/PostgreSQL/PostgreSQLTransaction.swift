// SPDX-License-Identifier: Apache-2.0

/// An open transaction of a connection.
struct PostgreSQLTransaction: SQLTransaction {
  let connection: PostgreSQLConnection
  let isSerializable: Bool

  var dialect: SQLDialect { .postgreSQL }
  var lockingRows: String {
    isSerializable && !Self.skipsLockedRows(connection.serverVersion) ? "FOR UPDATE" : "FOR UPDATE SKIP LOCKED"
  }

  /// Whether serializable transactions can leave out rows that others have locked: not with YugabyteDB (its issue
  /// 11761).
  /// - Parameter version: as the database reports it, such as `15.12-YB-2025.1.0.0-b168`.
  static func skipsLockedRows(_ version: String) -> Bool { !version.lowercased().contains("-yb-") }

  func execute(_ statement: String, _ parameters: [any SQLParameter]) throws -> Int {
    try connection.run(statement, parameters.map(\.sqlValue)).changedRows
  }

  func query(_ statement: String, _ parameters: [any SQLParameter], _ visit: (any SQLRow) throws -> Bool) throws {
    let result = try connection.run(statement, parameters.map(\.sqlValue))
    for row in 0..<result.rowCount {
      guard try visit(PostgreSQLRow(result: result, row: row)) else { return }
    }
  }
}

enum Placeholders {
  /// Replaces each `?` by `$1`, `$2` and so on. No statement contains a `?` in a literal.
  static func numbered(_ statement: String) -> String {
    var (numbered, count) = ("", 0)
    for part in statement.split(separator: "?", omittingEmptySubsequences: false) {
      if count > 0 { numbered += "$\(count)" }
      numbered += part
      count += 1
    }
    return numbered
  }
}
