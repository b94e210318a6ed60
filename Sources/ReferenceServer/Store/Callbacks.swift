import GRDB

/// A portal that still has to be told that a transaction has ended.
struct CallbackJob: Sendable, Equatable {
  let transactionID: String
  let url: String
  /// Deliveries that failed so far.
  let attempts: Int
  let createdAtMs: Int64
  let dueAtMs: Int64
}

extension Database {
  func insertCallback(_ transactionID: String, url: String, dueAtMs: Int64) throws {
    try run(
      "INSERT INTO callback (transaction_id, url, created_at_ms, due_at_ms) VALUES (?, ?, ?, ?)",
      [transactionID, url, dueAtMs, dueAtMs])
  }

  /// Soonest first.
  func callbacks(limit: Int) throws -> [CallbackJob] {
    try rows("SELECT * FROM callback ORDER BY due_at_ms LIMIT ?", [limit]).map { row in
      CallbackJob(
        transactionID: row["transaction_id"], url: row["url"], attempts: row["attempts"],
        createdAtMs: row["created_at_ms"], dueAtMs: row["due_at_ms"])
    }
  }

  func deleteCallback(_ transactionID: String) throws {
    try run("DELETE FROM callback WHERE transaction_id = ?", [transactionID])
  }

  func postponeCallback(_ transactionID: String, attempts: Int, dueAtMs: Int64) throws {
    try run(
      "UPDATE callback SET attempts = ?, due_at_ms = ? WHERE transaction_id = ?", [attempts, dueAtMs, transactionID])
  }
}
