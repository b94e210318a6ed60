// SPDX-License-Identifier: Apache-2.0

/// An open transaction of a connection.
struct PostgreSQLTransaction: SQLTransaction {
  let connection: PostgreSQLConnection
  let isSerializable: Bool

  var dialect: SQLDialect { .postgreSQL }
  var lockingRows: String {
    isSerializable && !connection.skipsLockedRows ? "FOR UPDATE" : "FOR UPDATE SKIP LOCKED"
  }

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
