// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Glibc

/// Whether SQLite has this process's settings; they must be made before the first connection.
private let isConfigured = approval_sqlite3_count_no_memory() == SQLITE_OK

/// A connection to a database file, with one owner. Threads must share it with a `Mutex`; each process opens its own.
package struct Connection: ~Copyable {
  let handle: OpaquePointer
  private let prepared: PreparedStatements
  /// How long a call waits for other connections, in milliseconds.
  static let patience: Int32 = 5_000
  /// A setting of a connection: what a statement or a savepoint may have to restore, and what is sorted, is in memory
  /// and not in a file of the directory for temporary files.
  package static let temporaryDataInMemory = "PRAGMA temp_store = MEMORY"

  /// Opens the file, and creates it if it does not exist. If another process holds a lock, a call waits up to 5 s
  /// before it fails with `SQLITE_BUSY`.
  /// - Throws: also if the path is not a regular file.
  /// - Parameters:
  ///   - readOnly: whether to open without writing. A missing file is then not created.
  ///   - isPrivate: whether the file must be one that only its owner can access.
  package init(path: String, readOnly: Bool = false, isPrivate: Bool = true) throws(SQLiteError) {
    // SQLite would create the file with the mode of the umask. Use mknod instead of open: closing any descriptor of a
    // database file releases the POSIX locks of all connections of this process to it.
    guard readOnly || mknod(path, S_IFREG | 0o600, 0) == 0 || errno == EEXIST else {
      throw SQLiteError(call: "create \(path)", code: SQLITE_CANTOPEN, message: String(cString: strerror(errno)))
    }
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, !isPrivate || status.st_mode & 0o077 == 0
    else {
      throw SQLiteError(
        call: "open \(path)", code: SQLITE_PERM,
        message: "not a regular file" + (isPrivate ? " that only its owner can read and write" : ""))
    }
    _ = isConfigured
    var opened: OpaquePointer?
    // No locks of SQLite's own: a connection has one owner.
    let code = sqlite3_open_v2(
      path, &opened,
      (readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX, nil)
    guard code == SQLITE_OK, let handle = opened else {
      let error = lastError(on: opened, call: "open \(path)")
      sqlite3_close(opened)
      throw error
    }
    self.handle = handle
    // Not before the last error: Swift 6.2 cannot compile an initializer that fails with a part of the value made.
    prepared = PreparedStatements()
    sqlite3_busy_timeout(handle, Self.patience)
    // A trigger that an attacker has added to the file must not change what this process writes.
    approval_sqlite3_forbid_programs(handle)
  }

  deinit {
    prepared.finalize()
    // No other statement outlives a call, so closing cannot fail with open statements.
    let code = sqlite3_close(handle)
    precondition(code == SQLITE_OK, "sqlite3_close: \(code)")
  }

  /// Runs statements without parameters and ignores their rows.
  package func execute(_ sql: String) throws(SQLiteError) {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw lastError(on: handle, call: sql) }
  }

  func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    try Statement(sql, of: prepared, on: handle)
  }

  /// Runs one statement to completion.
  /// - Returns: the number of rows inserted, updated or deleted, without cascaded deletes of foreign keys.
  @discardableResult
  package func run(_ sql: String, _ values: (any Bindable)...) throws(SQLiteError) -> Int {
    try run(sql, values)
  }

  /// As `run(_:_:)` with single values.
  @discardableResult
  package func run(_ sql: String, _ values: [any Bindable]) throws(SQLiteError) -> Int {
    let statement = try prepare(sql)
    try statement.bind(values)
    while try statement.step() {}
    return Int(sqlite3_changes64(handle))
  }

  /// Runs a query, and passes each row to `visit` until it returns false.
  package func query(
    _ sql: String, _ values: [any Bindable],
    _ visit: (borrowing Row, _ columnNames: [String]) throws -> Bool
  ) throws {
    try forEachRow(of: sql, values) { try visit($0.row, $0.columnNames) }
  }

  /// Runs a query and reads all rows.
  package func rows<Result>(
    _ sql: String, _ values: (any Bindable)..., as read: (borrowing Row) throws -> Result
  ) throws -> [Result] {
    var results: [Result] = []
    try forEachRow(of: sql, values) { statement in
      results.append(try read(statement.row))
      return true
    }
    return results
  }

  /// Steps through the rows of a query until `visit` returns false.
  private func forEachRow(
    of sql: String, _ values: [any Bindable], _ visit: (borrowing Statement) throws -> Bool
  ) throws {
    let statement = try prepare(sql)
    try statement.bind(values)
    while try statement.step(), try visit(statement) {}
  }

  /// Runs `body` as a transaction: all its changes are committed, or none. Other connections cannot write in the
  /// meantime.
  @discardableResult
  package func transaction<Result>(_ body: (borrowing Connection) throws -> Result) throws -> Result {
    // IMMEDIATE: a transaction that starts as a reader cannot wait for another writer, it can only fail.
    try enclosed(by: "BEGIN IMMEDIATE", body)
  }

  /// Runs `body` on a consistent snapshot of the database, unaffected by concurrent writes.
  package func snapshot<Result>(_ body: (borrowing Connection) throws -> Result) throws -> Result {
    try enclosed(by: "BEGIN DEFERRED", body)
  }

  private func enclosed<Result>(by begin: String, _ body: (borrowing Connection) throws -> Result) throws -> Result {
    try run(begin)
    do {
      let result = try body(self)
      try run("COMMIT")
      return result
    } catch {
      // If ROLLBACK itself fails, the next reader rolls back from the journal.
      if isInTransaction { try? execute("ROLLBACK") }
      throw error
    }
  }

  /// Whether a transaction is open. SQLite itself ends one at some errors (disk full, I/O).
  package var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Runs `body` as a part of a transaction: if it fails, only its own changes are rolled back.
  /// - Throws: `SQLiteError` also if SQLite has ended the transaction, and `body` has caught the error.
  package func savepoint<Result>(_ body: () throws -> Result) throws -> Result {
    try run("SAVEPOINT part")
    do {
      let result = try body()
      guard isInTransaction else {
        throw SQLiteError(call: "RELEASE part", code: SQLITE_ABORT, message: "the transaction has ended")
      }
      try run("RELEASE part")
      return result
    } catch {
      if isInTransaction {
        try run("ROLLBACK TO part")
        try run("RELEASE part")
      }
      throw error
    }
  }
}
