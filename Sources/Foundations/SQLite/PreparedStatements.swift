// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// The statements of a connection that are not in use, by their text: to prepare one takes longer than to run it.
final class PreparedStatements {
  /// The maximum number of statements, each some kilobytes.
  private static let limit = 32

  private var unused: [String: OpaquePointer] = [:]

  /// Returns a statement without values; `put` or `finalize` must follow.
  func take(_ sql: String, on database: OpaquePointer) throws(SQLiteError) -> OpaquePointer {
    if let statement = unused.removeValue(forKey: sql) { return statement }
    var prepared: OpaquePointer?
    guard
      sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil) == SQLITE_OK,
      let prepared
    else { throw lastError(on: database, call: "prepare \(sql)") }
    return prepared
  }

  /// Takes back a statement. Its values are freed, because they can be secret.
  func put(_ statement: OpaquePointer, for sql: String) {
    // Both report the error of the last step, which its caller has thrown.
    sqlite3_reset(statement)
    sqlite3_clear_bindings(statement)
    guard unused[sql] == nil, unused.count < Self.limit else {
      sqlite3_finalize(statement)
      return
    }
    unused[sql] = statement
  }

  /// Frees all, so that the connection can be closed.
  func finalize() {
    for statement in unused.values { sqlite3_finalize(statement) }
    unused = [:]
  }
}
