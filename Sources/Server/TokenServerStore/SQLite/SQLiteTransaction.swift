// SPDX-License-Identifier: Apache-2.0
import SQLite

/// A connection that one thread uses at a time.
final class SQLiteSession: @unchecked Sendable {
  let connection: Connection

  init(_ connection: consuming Connection) { self.connection = connection }
}

struct SQLiteTransaction: SQLTransaction {
  private let session: SQLiteSession

  init(_ session: SQLiteSession) { self.session = session }

  var dialect: SQLDialect { .sqlite }
  var lockingRows: String { "" }

  func execute(_ statement: String, _ parameters: [any SQLParameter]) throws -> Int {
    try session.connection.run(statement, try parameters.map { try $0.sqlValue.storable })
  }

  func query(_ statement: String, _ parameters: [any SQLParameter], _ visit: (any SQLRow) throws -> Bool) throws {
    try session.connection.query(statement, try parameters.map { try $0.sqlValue.storable }) { row, names in
      try visit(SQLiteRow(names: names, values: row.values.map(SQLValue.init)))
    }
  }
}

private struct SQLiteRow: SQLRow {
  let names: [String]
  let values: [SQLValue]

  func value(of column: String) -> SQLValue { names.firstIndex(of: column).map { values[$0] } ?? .null }

  var columns: [(name: String, value: SQLValue)] { zip(names, values).map { ($0, $1) } }
}

extension SQLValue: Bindable {
  /// The value itself. Of a text with U+0000, the database would return only the beginning, which is another text.
  fileprivate var storable: SQLValue {
    get throws { if case .text(let text) = self { .text(try text.storable) } else { self } }
  }

  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    switch self {
    case .null: Int64?.none.bind(to: statement, at: index)
    case .integer(let number): number.bind(to: statement, at: index)
    case .real(let number): number.bind(to: statement, at: index)
    case .text(let text): text.bind(to: statement, at: index)
    case .blob(let bytes): bytes.bind(to: statement, at: index)
    }
  }

  fileprivate init(_ value: Value) {
    self =
      switch value {
      case .null: .null
      case .integer(let number): .integer(number)
      case .real(let number): .real(number)
      case .text(let text): .text(text)
      case .blob(let bytes): .blob(bytes)
      }
  }
}

extension SQLiteError: SQLError {
  package var cause: String { "\(message) (SQLite \(code))" }
}
