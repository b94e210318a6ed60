// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// A prepared statement with its parameters bound. Created and stepped within one call of `Connection`.
struct Statement: ~Copyable {
  private let statement: PreparedStatement
  private let database: OpaquePointer
  private let sql: String
  private let prepared: PreparedStatements

  private var handle: OpaquePointer { statement.handle }

  init(_ sql: String, of prepared: PreparedStatements, on database: OpaquePointer) throws(SQLiteError) {
    statement = try prepared.take(sql, on: database)
    self.database = database
    self.sql = sql
    self.prepared = prepared
  }

  deinit { prepared.put(statement) }

  func bind(_ values: [any Bindable]) throws(SQLiteError) {
    precondition(Int(sqlite3_bind_parameter_count(handle)) == values.count, "parameters of \(sql)")
    for (index, value) in values.enumerated() {
      guard value.bind(to: handle, at: Int32(index + 1)) == SQLITE_OK else {
        throw lastError(on: database, call: "bind \(index + 1) of \(sql)")
      }
    }
  }

  /// - Returns: whether there is a row.
  func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: true
    case SQLITE_DONE: false
    default: throw lastError(on: database, call: "step \(sql)")
    }
  }

  var row: Row { Row(statement: handle) }

  /// Of the present row.
  var columnNames: [String] { statement.columnNames }
}

/// A value of any type.
package enum Value: Sendable, Equatable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
}

/// The present row of a statement. Valid only inside the closure that receives it.
package struct Row: ~Copyable {
  fileprivate let statement: OpaquePointer

  /// - Throws: `isDamage` if the column has another type. STRICT tables check types only on writing; a manipulated file
  ///   can contain anything.
  package func integer(_ column: Int32) throws(SQLiteError) -> Int64 {
    try expect(SQLITE_INTEGER, at: column, "an integer")
    return sqlite3_column_int64(statement, column)
  }

  /// - Throws: as `integer(_:)`, also if the text is not UTF-8.
  package func text(_ column: Int32) throws(SQLiteError) -> String {
    try expect(SQLITE_TEXT, at: column, "text")
    let address = sqlite3_column_text(statement, column)
    let utf8 = UnsafeBufferPointer(start: address, count: Int(sqlite3_column_bytes(statement, column)))
    guard let text = String(validating: utf8, as: UTF8.self) else { throw mismatch(column, "UTF-8") }
    return text
  }

  /// - Throws: as `integer(_:)`.
  package func blob(_ column: Int32) throws(SQLiteError) -> [UInt8] {
    try expect(SQLITE_BLOB, at: column, "a blob")
    let address = sqlite3_column_blob(statement, column)
    return Array(UnsafeRawBufferPointer(start: address, count: Int(sqlite3_column_bytes(statement, column))))
  }

  /// - Throws: as `text(_:)`.
  package func optionalText(_ column: Int32) throws(SQLiteError) -> String? {
    sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : try text(column)
  }

  /// - Throws: as `text(_:)`.
  package func optionalBlob(_ column: Int32) throws(SQLiteError) -> [UInt8]? {
    sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : try blob(column)
  }

  /// All values, whatever their types. Text that is not UTF-8 is repaired, and ends before U+0000.
  package var values: [Value] {
    (0..<sqlite3_column_count(statement)).map { column in
      switch sqlite3_column_type(statement, column) {
      case SQLITE_INTEGER: .integer(sqlite3_column_int64(statement, column))
      case SQLITE_FLOAT: .real(sqlite3_column_double(statement, column))
      case SQLITE_TEXT: sqlite3_column_text(statement, column).map { .text(String(cString: $0)) } ?? .null
      case SQLITE_BLOB:
        .blob(
          [UInt8](
            UnsafeRawBufferPointer(
              start: sqlite3_column_blob(statement, column), count: Int(sqlite3_column_bytes(statement, column)))))
      default: .null
      }
    }
  }

  private func expect(_ type: Int32, at column: Int32, _ name: String) throws(SQLiteError) {
    guard sqlite3_column_type(statement, column) == type else { throw mismatch(column, name) }
  }

  private func mismatch(_ column: Int32, _ expected: String) -> SQLiteError {
    let name = sqlite3_column_name(statement, column).map { String(cString: $0) } ?? "\(column)"
    return SQLiteError(call: "read", code: SQLITE_MISMATCH, message: "column \(name) is not \(expected)")
  }
}

func lastError(on database: OpaquePointer?, call: String) -> SQLiteError {
  SQLiteError(
    call: call, code: sqlite3_extended_errcode(database),
    message: sqlite3_errmsg(database).map { String(cString: $0) } ?? "out of memory")
}
