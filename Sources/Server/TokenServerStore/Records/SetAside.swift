// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import TokenServerCore

/// Unreadable rows of the tables that the server processes by itself. Such a row is moved to the table `set_aside` with
/// the reason, so that it does not block other rows, and no data is lost: its columns are kept as SQL literals.
extension Database {
  /// Reads rows, and moves the unreadable ones to `set_aside`.
  /// - Parameters:
  ///   - rows: rows of the table, each with its `rowid` as `row_number`.
  ///   - effects: receives a warning for each row that was set aside.
  /// - Returns: the values of the readable rows.
  /// - Throws: the database's own errors, which say nothing about a row.
  func readable<Value>(
    _ rows: [any SQLRow], of table: String, now: Timestamp, into effects: inout Effects,
    _ read: (any SQLRow) throws -> Value
  ) throws -> [Value] {
    try rows.compactMap { row in
      do { return try read(row) } catch let error as any SQLError { throw error } catch {
        try setAside(row, of: table, because: "\(error)", now: now)
        effects.warnings.append("row \(rowNumber(row)) of \(table) is set aside: \(error)")
        return nil
      }
    }
  }

  /// Whether there are unreadable rows that the server would process.
  package func hasUnreadable() throws -> Bool {
    func hasUnreadable(_ query: String, _ read: (any SQLRow) throws -> Void) throws -> Bool {
      var isFound = false
      try transaction.query(query, []) { row in
        do { try read(row) } catch { isFound = true }
        return !isFound
      }
      return isFound
    }
    return try hasUnreadable(unendedTransactions) { _ = try Transaction($0) }
      || hasUnreadable(callbacks) { _ = try CallbackJob($0) }
  }

  /// Checks all rows that the server would process, before it processes them.
  package func setAsideUnreadable(now: Timestamp) throws -> Effects {
    var effects = Effects()
    _ = try readable(
      rows(unendedTransactions), of: "mobile_auth_transaction", now: now, into: &effects, Transaction.init)
    _ = try readable(rows(callbacks), of: "callback", now: now, into: &effects) { try CallbackJob($0) }
    return effects
  }

  /// SQLite stores any value in any column. PostgreSQL finds open transactions by an index, without those that ended,
  /// of which a large installation has millions.
  private var unendedTransactions: String {
    let condition =
      switch dialect {
      case .sqlite: "ended_at_ms IS NULL"
      case .postgreSQL: "state = 'open'"
      }
    return "SELECT rowid AS row_number, * FROM mobile_auth_transaction WHERE \(condition)"
  }

  private var callbacks: String { "SELECT rowid AS row_number, * FROM callback" }

  /// Lists unreadable rows of the tables that only requests of the owner read. These rows are not moved, because other
  /// rows refer to them; lists omit them.
  /// - Returns: a line with the table and the row id for each unreadable row, at most 1000 lines per table. None of
  ///   PostgreSQL, whose columns have types: it would send whole tables.
  package func unreadableRows(of tables: [String]? = nil) throws -> [String] {
    guard dialect == .sqlite else { return [] }
    return try (tables ?? readers.keys.sorted()).flatMap { table -> [String] in
      guard let (query, read) = readers[table] else { return [] }
      var lines: [String] = []
      try transaction.query(query, []) { row in
        do { try read(row) } catch { lines.append("row \(rowNumber(row)) of \(table) cannot be read: \(error)") }
        return lines.count < 1000
      }
      return lines
    }
  }

  private func setAside(_ row: any SQLRow, of table: String, because why: String, now: Timestamp) throws {
    let columns = row.columns.filter { $0.name != "row_number" }.map { "\($0.name) = \(literal($0.value))" }
    try run(
      "INSERT INTO set_aside (table_name, columns, why, at_ms) VALUES (?, ?, ?, ?)",
      [table, columns.joined(separator: ", "), why, now])
    // The table name comes from constants in the code, never from data.
    try run("DELETE FROM \(table) WHERE rowid = ?", [row.value(of: "row_number")])
  }
}

/// The query and the parser for the rows of each table.
private var readers: [String: (query: String, read: @Sendable (any SQLRow) throws -> Void)] {
  [
    "activation_code": (
      "SELECT rowid AS row_number, * FROM activation_code",
      { _ = try (StoredActivationCode($0), $0.time("expires_at_ms")) }
    ),
    "api_client": ("SELECT rowid AS row_number, * FROM api_client", { _ = try APIClient($0) }),
    "authenticator": ("SELECT rowid AS row_number, * FROM authenticator", { _ = try AuthenticatorRecord($0) }),
    "device": ("SELECT rowid AS row_number, * FROM device", { _ = try Device($0) }),
    "fleet_token": (
      "SELECT rowid AS row_number, * FROM fleet_token", { _ = try ($0.text("name"), $0.time("created_at_ms")) }
    ),
    "hold": (
      "SELECT user_id AS row_number, * FROM hold", { _ = try ($0.userID("user_id"), $0.time("until_ms")) }
    ),
    "mobile_auth_transaction": (
      "SELECT rowid AS row_number, * FROM mobile_auth_transaction",
      { _ = try (Transaction($0), $0.optionalText("denial_reason")) }
    ),
    "pin_change": ("SELECT rowid AS row_number, * FROM pin_change", { _ = try StoredPINChange($0) }),
    "profile": (
      Profile.query(.sqlite).replacing("SELECT ", with: "SELECT profile.rowid AS row_number, ", maxReplacements: 1),
      { _ = try Profile($0) }
    ),
    "server_key": (
      "SELECT rowid AS row_number, * FROM server_key",
      { _ = try ($0.text("fingerprint"), $0.bytes("sealed_secret"), $0.flag("is_shared")) }
    ),
    "user": (
      #"SELECT rowid AS row_number, * FROM "user""#, { _ = try ($0.userID("id"), $0.time("created_at_ms")) }
    ),
  ]
}

/// The row id for a report; of a table without row ids, its key.
private func rowNumber(_ row: any SQLRow) -> String {
  guard case .text(let key) = row.value(of: "row_number") else { return literal(row.value(of: "row_number")) }
  return "\"\(key)\""
}

private func literal(_ value: SQLValue) -> String {
  switch value {
  case .null: "NULL"
  case .integer(let number): "\(number)"
  case .real(let number): "\(number)"
  // By scalars: with a combining mark, an apostrophe is another `Character`, but not for SQL.
  case .text(let text): "'" + text.unicodeScalars.map { $0 == "'" ? "''" : String($0) }.joined() + "'"
  case .blob(let bytes): "x'\(bytes.lowercaseHex)'"
  }
}
