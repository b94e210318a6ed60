// SPDX-License-Identifier: Apache-2.0
import Foundation
import GRDB

struct SQLiteTransaction: SQLTransaction {
  private let database: GRDB.Database

  init(_ database: GRDB.Database) { self.database = database }

  var dialect: SQLDialect { .sqlite }
  var lockingRows: String { "" }

  func execute(_ statement: String, _ parameters: [any SQLParameter]) throws -> Int {
    try database.cachedStatement(sql: statement).execute(arguments: try StatementArguments(parameters))
    return database.changesCount
  }

  func query(_ statement: String, _ parameters: [any SQLParameter], _ visit: (any SQLRow) throws -> Bool) throws {
    let prepared = try database.cachedStatement(sql: statement)
    let rows = try Row.fetchCursor(prepared, arguments: try StatementArguments(parameters))
    let names = prepared.columnNames
    while let row = try rows.next() {
      let values = names.indices.map { SQLValue(row[$0] as DatabaseValue) }
      guard try visit(SQLiteRow(names: names, values: values)) else { return }
    }
  }
}

/// GRDB's own copy of a row compares the names of all columns in lowercase, for each access.
struct SQLiteRow: SQLRow {
  let names: [String]
  let values: [SQLValue]

  func value(of column: String) -> SQLValue { names.firstIndex(of: column).map { values[$0] } ?? .null }

  var columns: [(name: String, value: SQLValue)] { zip(names, values).map { ($0, $1) } }
}

extension StatementArguments {
  fileprivate init(_ parameters: [any SQLParameter]) throws {
    // Of any type: for values of one type, GRDB makes a key path for each statement.
    let values: [(any DatabaseValueConvertible)?] = try parameters.map { DatabaseValue(try $0.sqlValue.storable) }
    self.init(values)
  }
}

extension SQLValue {
  /// The value itself. GRDB would store the beginning of a text with U+0000, which is another text.
  var storable: SQLValue {
    get throws { if case .text(let text) = self { .text(try text.storable) } else { self } }
  }

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
