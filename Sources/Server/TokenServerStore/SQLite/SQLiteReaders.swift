// SPDX-License-Identifier: Apache-2.0
import SQLite
import Synchronization

/// Connections that read a SQLite file, each used by one thread at a time.
final class SQLiteReaders: Sendable {
  /// The maximum number of connections that are kept.
  private static let limit = 16

  private let path: String
  private let unused = Mutex<[SQLiteSession]>([])

  /// - Parameter path: of a file with a write-ahead log.
  init(path: String) { self.path = path }

  /// Runs `body` on a consistent state, on the thread of the caller. Waits for no other reader and no writer.
  /// - Throws: `SQLiteError`, also for a change, or the error of `body`.
  func read<Value>(_ body: (any SQLTransaction) throws -> Value) throws -> Value {
    let reader = try unused.withLock { $0.popLast() } ?? SQLiteSession(newConnection())
    var hasFailed = false
    defer { if !hasFailed { unused.withLock { if $0.count < Self.limit { $0.append(reader) } } } }
    do { return try reader.connection.snapshot { _ in try body(SQLiteTransaction(reader)) } } catch {
      // Its transaction may not have ended.
      hasFailed = error is SQLiteError
      throw error
    }
  }

  private func newConnection() throws -> Connection {
    // The directory is private.
    let connection = try Connection(path: path, readOnly: true, isPrivate: false)
    try connection.execute(Connection.temporaryDataInMemory)
    return connection
  }

  /// Closes the connections that are not in use.
  func close() { unused.withLock { $0 = [] } }
}
