// SPDX-License-Identifier: Apache-2.0
import GRDB
import SQLite

/// One SQLite file: many readers, one writer. A committed change survives a power loss (`synchronous=FULL`); commands
/// in other processes may write to the same file at the same time.
struct SQLiteDatabase: SQLDatabase {
  /// For changes and the schema.
  let pool: DatabasePool
  private let writes: WriteQueue
  private let readers: SQLiteReaders

  init(path: String) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(5)
    pool = try DatabasePool(path: path, configuration: configuration)
    // GRDB leaves a WAL database at NORMAL, which may lose the last commits at a power loss.
    try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    try Schema.migrator.migrate(pool)
    writes = WriteQueue(pool)
    readers = SQLiteReaders(path: path)
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
    do { return try await writes.write(isUrgent: isUrgent) { try change(SQLiteTransaction($0)) } } catch {
      throw Self.translated(error)
    }
  }

  func writeStatement<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value {
    try await write(isUrgent: isUrgent, change)
  }

  var waiting: Int { writes.dueCount }
  var connections: ConnectionCounts? { nil }

  func close() throws {
    readers.close()
    try pool.close()
  }

  private static func translated(_ error: any Error) -> any Error {
    let code: ResultCode
    switch error {
    case let error as DatabaseError: code = error.resultCode
    case let error as SQLiteError: code = ResultCode(rawValue: error.code & 0xFF)
    default: return error
    }
    return code.isOfTheDisk ? StorageUnavailableError(reason: "\(code)", description: "\(error)") : error
  }
}

extension ResultCode {
  /// Whether the error is independent of the request: the disk is full, failing or read-only, or the file is locked.
  fileprivate var isOfTheDisk: Bool {
    [.SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_NOMEM]
      .contains(self)
  }
}

extension DatabaseError: SQLError {
  package var cause: String { "\(message ?? "no message") (SQLite \(extendedResultCode.rawValue))" }
}
