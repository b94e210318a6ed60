// SPDX-License-Identifier: Apache-2.0
import Foundation
import GRDB

struct SQLiteTransaction: SQLTransaction {
  private let database: GRDB.Database

  init(_ database: GRDB.Database) { self.database = database }

  var dialect: SQLDialect { .sqlite }

  func execute(_ statement: String, _ parameters: [any SQLParameter]) throws -> Int {
    try database.cachedStatement(sql: statement).execute(arguments: StatementArguments(parameters))
    return database.changesCount
  }

  func query(_ statement: String, _ parameters: [any SQLParameter], _ visit: (any SQLRow) throws -> Bool) throws {
    let rows = try Row.fetchCursor(
      database.cachedStatement(sql: statement), arguments: StatementArguments(parameters))
    while let row = try rows.next() {
      guard try visit(SQLiteRow(row: row.copy())) else { return }
    }
  }
}

private struct SQLiteRow: SQLRow {
  let row: Row

  func value(of column: String) -> SQLValue { SQLValue(row[column] as DatabaseValue) }

  var columns: [(name: String, value: SQLValue)] { row.map { ($0, SQLValue($1)) } }
}

extension StatementArguments {
  fileprivate init(_ parameters: [any SQLParameter]) {
    self.init(parameters.map { DatabaseValue($0.sqlValue) })
  }
}

extension SQLValue {
  fileprivate init(_ value: DatabaseValue) {
    self =
      switch value.storage {
      case .null: .null
      case .int64(let number): .integer(number)
      case .double(let number): .real(number)
      case .string(let text): .text(text)
      case .blob(let data): .blob([UInt8](data))
      }
  }
}

extension DatabaseValue {
  fileprivate init(_ value: SQLValue) {
    self =
      switch value {
      case .null: .null
      case .integer(let number): number.databaseValue
      case .real(let number): number.databaseValue
      case .text(let text): text.databaseValue
      case .blob(let bytes): Data(bytes).databaseValue
      }
  }
}
