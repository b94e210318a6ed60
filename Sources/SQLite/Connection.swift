import CSQLite
import Glibc

/// One connection to one database file. It has one owner; threads share it behind a `Mutex`, processes each open
/// their own.
public struct Connection: ~Copyable {
  private let handle: OpaquePointer

  /// Opens the file, and makes it if it is not there.
  ///
  /// Another process gets 5 s to let go of a lock before a call fails with `SQLITE_BUSY`.
  /// - Throws: also if what is there is not a regular file that only its owner can touch.
  /// - Parameter readOnly: nothing is written, and a file that is not there is not made.
  public init(path: String, readOnly: Bool = false) throws(SQLiteError) {
    // SQLite would make the file with the umask's mode. mknod, not open: closing any descriptor of a database file
    // drops the POSIX locks of every connection this process has to it.
    guard readOnly || mknod(path, S_IFREG | 0o600, 0) == 0 || errno == EEXIST else {
      throw SQLiteError(call: "create \(path)", code: SQLITE_CANTOPEN, message: String(cString: strerror(errno)))
    }
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 == 0 else {
      throw SQLiteError(
        call: "open \(path)", code: SQLITE_PERM, message: "not a regular file that only its owner can read and write")
    }
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(
      path, &opened, (readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_EXRESCODE, nil)
    guard code == SQLITE_OK, let handle = opened else {
      let error = lastError(on: opened, call: "open \(path)")
      sqlite3_close(opened)
      throw error
    }
    self.handle = handle
    sqlite3_busy_timeout(handle, 5_000)
  }

  deinit {
    // Statements never outlive a call, so nothing can keep it open.
    let code = sqlite3_close(handle)
    precondition(code == SQLITE_OK, "sqlite3_close: \(code)")
  }

  /// Runs statements that take no values and whose rows nobody wants.
  public func execute(_ sql: String) throws(SQLiteError) {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw lastError(on: handle, call: sql) }
  }

  /// Runs one statement to its end.
  /// - Returns: how many rows it inserted, updated or deleted, not counting what foreign keys took along.
  @discardableResult
  public func run(_ sql: String, _ values: (any Bindable)...) throws(SQLiteError) -> Int {
    let statement = try Statement(sql, on: handle)
    try statement.bind(values)
    while try statement.step() {}
    return Int(sqlite3_changes64(handle))
  }

  /// Runs one query and reads every row.
  public func rows<Result>(
    _ sql: String, _ values: (any Bindable)..., as read: (borrowing Row) throws -> Result
  ) throws -> [Result] {
    let statement = try Statement(sql, on: handle)
    try statement.bind(values)
    var results: [Result] = []
    while try statement.step() { results.append(try read(statement.row)) }
    return results
  }

  /// All of `body` happens, or none of it. Nobody else writes meanwhile.
  @discardableResult
  public func transaction<Result>(_ body: (borrowing Connection) throws -> Result) throws -> Result {
    // IMMEDIATE: a transaction that starts as a reader cannot wait for another writer, it can only fail.
    try enclosed(by: "BEGIN IMMEDIATE", body)
  }

  /// `body` sees one state of the database, whatever others write meanwhile.
  public func snapshot<Result>(_ body: (borrowing Connection) throws -> Result) throws -> Result {
    try enclosed(by: "BEGIN DEFERRED", body)
  }

  private func enclosed<Result>(by begin: String, _ body: (borrowing Connection) throws -> Result) throws -> Result {
    try execute(begin)
    do {
      let result = try body(self)
      try execute("COMMIT")
      return result
    } catch {
      // SQLite has already rolled back after some errors (disk full, I/O). If ROLLBACK itself fails, the file is
      // left to the next reader, who rolls back from the journal.
      if sqlite3_get_autocommit(handle) == 0 { try? execute("ROLLBACK") }
      throw error
    }
  }
}
