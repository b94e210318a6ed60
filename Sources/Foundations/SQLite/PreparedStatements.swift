// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// A statement, with what was read from it once.
final class PreparedStatement {
  let handle: OpaquePointer
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

/// The statements of a connection that are not in use, by their text: to prepare one takes longer than to run it.
final class PreparedStatements {
  /// The maximum number of statements, each some kilobytes.
  private static let limit = 64

  private var unused: [String: PreparedStatement] = [:]

  /// Returns a statement without values; `put` or `finalize` must follow.
  func take(_ sql: String, on database: OpaquePointer) throws(SQLiteError) -> PreparedStatement {
    if let statement = unused.removeValue(forKey: sql) { return statement }
    var prepared: OpaquePointer?
    guard
      sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil) == SQLITE_OK,
      let prepared
    else { throw lastError(on: database, call: "prepare \(sql)") }
    return PreparedStatement(prepared)
  }

  /// Takes back a statement. Its values are freed, because they can be secret.
  func put(_ statement: PreparedStatement, for sql: String) {
    // Both report the error of the last step, which its caller has thrown.
    sqlite3_reset(statement.handle)
    sqlite3_clear_bindings(statement.handle)
    if unused.count >= Self.limit, let other = unused.popFirst() { sqlite3_finalize(other.value.handle) }
    if let other = unused.updateValue(statement, forKey: sql) { sqlite3_finalize(other.handle) }
  }

  /// Frees all, so that the connection can be closed.
  func finalize() {
    for statement in unused.values { sqlite3_finalize(statement.handle) }
    unused = [:]
  }
}
