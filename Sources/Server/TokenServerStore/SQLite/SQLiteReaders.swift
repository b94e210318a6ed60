// SPDX-License-Identifier: Apache-2.0
import SQLite
import Synchronization
import TokenServerCore

/// Connections that read a SQLite file, each used by one thread at a time. Unlike those of GRDB, they begin and end a
/// read with prepared statements, and ask for the version of the schema only if SQLite has noticed a change.
final class SQLiteReaders: Sendable {
  /// The maximum number of connections that are kept.
  private static let limit = 16

  fileprivate final class Reader: @unchecked Sendable {
    let connection: Connection

    init(path: String) throws(SQLiteError) {
      // The directory is private.
      connection = try Connection(path: path, readOnly: true, isPrivate: false)
    }
  }

  private let path: String
  private let unused = Mutex<[Reader]>([])

  /// - Parameter path: of a file with a write-ahead log.
  init(path: String) { self.path = path }

  /// Runs `body` on a consistent state, on the thread of the caller. Waits for no other reader and no writer.
  /// - Throws: `SQLiteError`, or the error of `body`.
  func read<Value>(_ body: (any SQLTransaction) throws -> Value) throws -> Value {
    let reader = try unused.withLock { $0.popLast() } ?? Reader(path: path)
    var hasFailed = false
    defer { if !hasFailed { unused.withLock { if $0.count < Self.limit { $0.append(reader) } } } }
    do { return try reader.connection.snapshot { _ in try body(SQLiteSnapshot(reader: reader)) } } catch {
      // Its transaction may not have ended.
      hasFailed = error is SQLiteError
      throw error
    }
  }

  /// Closes the connections that are not in use.
  func close() { unused.withLock { $0 = [] } }
}

extension SQLiteError: SQLError {
  package var cause: String { "\(message) (SQLite \(code))" }
}

private struct SQLiteSnapshot: SQLTransaction {
  let reader: SQLiteReaders.Reader

  var dialect: SQLDialect { .sqlite }
  var lockingRows: String { "" }

  /// - Throws: for a change.
  func execute(_ statement: String, _ parameters: [any SQLParameter]) throws -> Int {
    try reader.connection.query(statement, try parameters.map { try $0.sqlValue.storable }) { _, _ in true }
    return 0
  }

  func query(_ statement: String, _ parameters: [any SQLParameter], _ visit: (any SQLRow) throws -> Bool) throws {
    try reader.connection.query(statement, try parameters.map { try $0.sqlValue.storable }) { row, names in
      try visit(SQLiteRow(names: names, values: row.values.map(SQLValue.init)))
    }
  }
}

extension SQLValue: Bindable {
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
