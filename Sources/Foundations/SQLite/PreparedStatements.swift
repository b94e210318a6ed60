// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// A statement, with what was read from it once.
final class PreparedStatement {
  let handle: OpaquePointer
  /// Whether the connection keeps it for the next use.
  fileprivate var isKept = false
  fileprivate var isInUse = true
  private var names: [String] = []
  /// How often SQLite had compiled the statement again when the names were read.
  private var compilations: Int32?

  init(_ handle: OpaquePointer) { self.handle = handle }

  /// The names of the columns of the present row.
  var columnNames: [String] {
    // SQLite compiles a statement again, at its first step, when the tables have changed.
    let compilations = sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_REPREPARE, 0)
    if self.compilations != compilations {
      self.compilations = compilations
      names = (0..<sqlite3_column_count(handle)).map { String(cString: sqlite3_column_name(handle, $0)) }
    }
    return names
  }
}

/// The statements of a connection, by their text: to prepare one takes longer than to run it.
final class PreparedStatements {
  /// The maximum number of statements, each some kilobytes.
  private static let limit = 64

  private var kept: [String: PreparedStatement] = [:]

  /// Returns a statement without values; `put` or `finalize` must follow.
  func take(_ sql: String, on database: OpaquePointer) throws(SQLiteError) -> PreparedStatement {
    let known = kept[sql]
    if let known, !known.isInUse {
      known.isInUse = true
      return known
    }
    var prepared: OpaquePointer?
    guard
      sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil) == SQLITE_OK,
      let prepared
    else { throw lastError(on: database, call: "prepare \(sql)") }
    let statement = PreparedStatement(prepared)
    if known == nil { keep(statement, for: sql) }
    return statement
  }

  /// In place of another one that is not in use, if there are many.
  private func keep(_ statement: PreparedStatement, for sql: String) {
    if kept.count >= Self.limit {
      guard let other = kept.firstIndex(where: { !$0.value.isInUse }) else { return }
      sqlite3_finalize(kept.remove(at: other).value.handle)
    }
    statement.isKept = true
    kept[sql] = statement
  }

  /// Takes back a statement. Its values are freed, because they can be secret.
  func put(_ statement: PreparedStatement) {
    guard statement.isKept else {
      sqlite3_finalize(statement.handle)
      return
    }
    // Both report the error of the last step, which its caller has thrown.
    sqlite3_reset(statement.handle)
    sqlite3_clear_bindings(statement.handle)
    statement.isInUse = false
  }

  /// Frees all, so that the connection can be closed.
  func finalize() {
    for statement in kept.values { sqlite3_finalize(statement.handle) }
    kept = [:]
  }
}
