// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Glibc

/// The write-ahead log (https://sqlite.org/wal.html): a commit appends to the log and waits for storage once. The log
/// keeps old pages until a checkpoint truncates it.
extension Connection {
  /// How long `useWriteAheadLog` waits for other connections, in steps of 10 ms.
  private static let attempts = 500

  /// Uses a write-ahead log from now on. The setting is stored in the file.
  /// - Parameter isKept: whether the log stays, truncated, when the last connection closes, so that a database on
  ///   read-only storage can be read; a checkpoint then truncates it, too.
  /// - Throws: also if other connections keep the file in another mode for 5 s.
  package func useWriteAheadLog(isKept: Bool = true) throws(SQLiteError) {
    // SQLite waits for other connections at some of these calls, and at others it does not.
    sqlite3_busy_timeout(handle, 0)
    defer { sqlite3_busy_timeout(handle, Self.patience) }
    for attempt in 1... {
      do throws(SQLiteError) {
        let mode = try journalMode("WAL")
        guard mode == "wal" else {
          throw SQLiteError(call: "journal_mode", code: SQLITE_BUSY, message: "is \(mode), not wal")
        }
        break
      } catch {
        guard error.code & 0xFF == SQLITE_BUSY, attempt < Self.attempts else { throw error }
        usleep(10_000)
      }
    }
    guard isKept else { return }
    guard approval_sqlite3_keep_log(handle) == SQLITE_OK else { throw lastError(on: handle, call: "keep the log") }
    try execute("PRAGMA journal_size_limit = 0")
  }

  private func journalMode(_ wanted: String) throws(SQLiteError) -> String {
    let statement = try prepare("PRAGMA journal_mode = \(wanted)")
    return try statement.step() ? try statement.row.text(0) : ""
  }

  /// Gives the log this size, and keeps it while the log is shorter. A commit then changes no size; otherwise a file
  /// system with a journal writes that, too, and waits another time.
  package func reserveLog(bytes: Int) throws {
    try execute("PRAGMA journal_size_limit = \(bytes)")
    try transaction { connection in
      guard approval_sqlite3_extend_journal(connection.handle, Int64(bytes)) == SQLITE_OK else {
        throw lastError(on: connection.handle, call: "extend the log")
      }
    }
  }

  /// Copies the log into the database file, as far as other connections are not reading. Later commits use the log from
  /// its beginning.
  package func reuseLog() throws(SQLiteError) { try execute("PRAGMA wal_checkpoint(PASSIVE)") }

  /// Copies the log into the database file and truncates the log. Both are durable when this returns.
  /// - Parameter waits: whether to wait up to 5 s for other connections that are reading.
  /// - Returns: false if another connection was reading, and old pages are still in the log.
  package func truncateLog(waits: Bool = true) throws(SQLiteError) -> Bool {
    sqlite3_busy_timeout(handle, waits ? Self.patience : 0)
    defer { sqlite3_busy_timeout(handle, Self.patience) }
    let statement = try prepare("PRAGMA wal_checkpoint(TRUNCATE)")
    guard try statement.step(), try statement.row.integer(0) == 0 else { return false }
    guard approval_sqlite3_sync_journal(handle) == SQLITE_OK else { throw lastError(on: handle, call: "sync the log") }
    return true
  }
}
