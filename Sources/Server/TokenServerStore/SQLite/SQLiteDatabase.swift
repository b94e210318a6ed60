// SPDX-License-Identifier: Apache-2.0
import SQLite

/// One SQLite file: many readers, one writer. A committed change survives a power loss (`synchronous=FULL`); commands
/// in other processes may write to the same file at the same time.
struct SQLiteDatabase: SQLDatabase {
  // Closed before the writer, whose connection then is the last one and copies the log into the file.
  private let readers: SQLiteReaders
  private let writes: WriteQueue

  init(path: String) throws {
    do { writes = WriteQueue(SQLiteSession(try Self.writer(of: path))) } catch { throw Self.translated(error) }
    readers = SQLiteReaders(path: path)
  }

  private static func writer(of path: String) throws -> Connection {
    // The directory is private.
    let connection = try Connection(path: path, isPrivate: false)
    try connection.useWriteAheadLog(isKept: false)
    try connection.execute("PRAGMA synchronous = FULL; \(Connection.temporaryDataInMemory)")
    try Schema.migrate(connection)
    try connection.execute("PRAGMA foreign_keys = ON")
    return connection
  }

  /// On the thread of the caller: two changes of threads take longer than a read. A reader waits for no
  /// writer, but for the disk if a page is not in memory.
  func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLTransaction) throws -> Value) async throws -> Value {
    try snapshot(body)
  }

  /// `read`, for callers that are not asynchronous.
  func snapshot<Value>(_ body: (any SQLTransaction) throws -> Value) throws -> Value {
    do { return try readers.read(body) } catch { throw Self.translated(error) }
  }

  func write<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value {
    do { return try await writes.write(isUrgent: isUrgent, change) } catch { throw Self.translated(error) }
  }

  func writeStatement<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value {
    try await write(isUrgent: isUrgent, change)
  }

  var waiting: Int { writes.dueCount }
  var connections: ConnectionCounts? { nil }

  func close() {
    readers.close()
    writes.close()
  }

  private static func translated(_ error: any Error) -> any Error {
    guard let error = error as? SQLiteError, error.isOfTheDisk else { return error }
    return StorageUnavailableError(reason: error.cause, description: error.description)
  }
}
