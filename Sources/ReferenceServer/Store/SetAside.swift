import Cryptography
import Foundation
import GRDB

/// Unreadable rows of the tables that the server processes by itself. Such a row is moved to the table `set_aside` with
/// the reason, so that it does not block other rows, and no data is lost: its columns are kept as SQL literals.
extension Database {
  /// - Parameters:
  ///   - rows: rows of the table, each with its `rowid` as `row_number`.
  ///   - effects: receives a warning for each row that was set aside.
  /// - Returns: the values of the readable rows.
  func readable<Value>(
    _ rows: [Row], of table: String, nowMs: Int64, into effects: inout Effects, _ read: (Row) throws -> Value
  ) throws -> [Value] {
    try rows.compactMap { row in
      do { return try read(row) } catch {
        try setAside(row, of: table, because: "\(error)", nowMs: nowMs)
        effects.warnings.append("a row of \(table) is set aside: \(error)")
        return nil
      }
    }
  }

  /// Checks all rows that the server would process, before it processes them.
  func setAsideUnreadable(nowMs: Int64) throws -> Effects {
    var effects = Effects()
    let open = try rows("SELECT rowid AS row_number, * FROM mobile_auth_transaction WHERE ended_at_ms IS NULL")
    _ = try readable(open, of: "mobile_auth_transaction", nowMs: nowMs, into: &effects, Transaction.init)
    _ = try readable(
      rows("SELECT rowid AS row_number, * FROM callback"), of: "callback", nowMs: nowMs, into: &effects,
      CallbackJob.init)
    return effects
  }

  private func setAside(_ row: Row, of table: String, because why: String, nowMs: Int64) throws {
    let columns = row.filter { $0.0 != "row_number" }.map { name, value in "\(name) = \(literal(value))" }
    try run(
      "INSERT INTO set_aside (table_name, columns, why, at_ms) VALUES (?, ?, ?, ?)",
      [table, columns.joined(separator: ", "), why, nowMs])
    let number: Int64 = row["row_number"]
    // The table name comes from constants in the code, never from data.
    try run("DELETE FROM \(table) WHERE rowid = ?", [number])
  }
}

private func literal(_ value: DatabaseValue) -> String {
  switch value.storage {
  case .null: "NULL"
  case .int64(let number): "\(number)"
  case .double(let number): "\(number)"
  case .string(let text): "'\(text.replacing("'", with: "''"))'"
  case .blob(let data): "x'\(data.lowercaseHex)'"
  }
}
