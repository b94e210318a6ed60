// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Glibc
import Testing

@testable import SQLite

@Suite("A connection", .timeLimit(.minutes(5))) struct ConnectionTests {
  private let fixture: DatabaseFixture

  init() throws { fixture = try DatabaseFixture() }

  @Test("Creates a file that only its owner can access") func createsAFileThatOnlyItsOwnerCanAccess() async {
    await #expect(processExitsWith: .success) {
      umask(0)
      let fixture = try DatabaseFixture()
      try fixture.connection().execute("CREATE TABLE t (x)")
      var status = stat()
      #expect(lstat(fixture.database, &status) == 0)
      #expect(status.st_mode == S_IFREG | 0o600)
    }
  }

  @Test("Rejects other kinds of files", arguments: ["readable", "symbolic link", "directory", "FIFO"])
  func rejectsOtherKindsOfFiles(what: String) throws {
    let path = fixture.database
    switch what {
    case "readable": mknod(path, S_IFREG | 0o604, 0)
    case "symbolic link":
      // chmod(2) follows it: to a file of the test, never to one of the machine.
      mknod("\(path).target", S_IFREG | 0o600, 0)
      symlink("\(path).target", path)
    case "directory": mkdir(path, 0o700)
    default: mkfifo(path, 0o600)
    }
    chmod(path, what == "readable" ? 0o604 : 0o700)
    let error = #expect(throws: SQLiteError.self) { _ = try fixture.connection() }
    #expect(error?.call == "open \(path)")
    #expect(error?.message == "not a regular file that only its owner can read and write")
    rmdir(path)
  }

  @Test("Does not ask for a private file that may be shared") func rejectsDirectoryThatMayBeShared() throws {
    mkdir(fixture.database, 0o755)
    let error = #expect(throws: SQLiteError.self) {
      _ = try Connection(path: fixture.database, readOnly: true, isPrivate: false)
    }
    #expect(error?.message == "not a regular file")
    rmdir(fixture.database)
  }

  @Test("Names a missing directory") func namesAMissingDirectory() {
    let error = #expect(throws: SQLiteError.self) { _ = try Connection(path: "\(fixture.path)/no/file") }
    #expect(error?.description == "create \(fixture.path)/no/file: No such file or directory (SQLite 14)")
  }

  @Test("Reports a file that is not a database as damaged") func reportsAFileThatIsNotADatabaseAsDamaged() throws {
    mknod(fixture.database, S_IFREG | 0o600, 0)
    let descriptor = open(fixture.database, O_WRONLY)
    #expect(write(descriptor, [UInt8](repeating: 1, count: 4096), 4096) == 4096)
    close(descriptor)
    let connection = try fixture.connection()
    let error = #expect(throws: SQLiteError.self) { try connection.rows("SELECT * FROM sqlite_schema") { _ in } }
    #expect(error?.isDamage == true)
    #expect(error?.message == "file is not a database")
  }

  @Test("Names the statement and SQLite's reason") func namesTheStatementAndSQLitesReason() throws {
    let connection = try fixture.connection()
    try connection.execute("CREATE TABLE t (x INTEGER NOT NULL UNIQUE) STRICT")
    try connection.run("INSERT INTO t VALUES (?)", Int64(1))
    let failures: [(sql: String, value: any Bindable, call: String, message: String)] = [
      ("INSERT INTO u VALUES (?)", Int64(1), "prepare", "no such table: u"),
      ("INSERT INTO t VALUES (?)", Int64(1), "step", "UNIQUE constraint failed: t.x"),
      ("INSERT INTO t VALUES (?)", "text", "step", "cannot store TEXT value in INTEGER column t.x"),
      ("INSERT INTO t VALUES (?)", String?.none, "step", "NOT NULL constraint failed: t.x"),
    ]
    for (sql, value, call, message) in failures {
      let error = #expect(throws: SQLiteError.self) { try connection.run(sql, value) }
      #expect(error?.call == "\(call) \(sql)")
      #expect(error?.message == message)
      #expect(error?.isDamage == false)
    }
    let error = #expect(throws: SQLiteError.self) { try connection.execute("CREATE TABLE t (x)") }
    #expect(error?.description == "CREATE TABLE t (x): table t already exists (SQLite 1)")
  }

  @Test("Prepared statements keep no values, and can be used within themselves") func reusesStatements() throws {
    let connection = try fixture.connection()
    try connection.execute("CREATE TABLE t (x INTEGER)")
    for number in 1...40 as ClosedRange<Int64> { try connection.run("INSERT INTO t VALUES (?)", number) }
    let query = "SELECT x FROM t WHERE x <= ?"
    let pairs = try connection.rows(query, Int64(2)) { row in
      (try row.integer(0), try connection.rows(query, Int64(1)) { try $0.integer(0) })
    }
    #expect(pairs.map(\.0) == [1, 2] && pairs.map(\.1) == [[1], [1]])
    // More different ones than are kept, and a change of the schema between two uses.
    for number in 1...80 { #expect(try connection.rows("SELECT \(number)") { try $0.integer(0) } == [Int64(number)]) }
    try connection.execute("ALTER TABLE t ADD COLUMN y INTEGER")
    #expect(try connection.rows("SELECT * FROM t WHERE x = ?", Int64(7)) { try $0.integer(0) } == [7])
    #expect(try connection.rows(query, Int64(1)) { try $0.integer(0) } == [1])
    #expect(throws: SQLiteError.self) {
      try connection.rows(query, Int64(2)) { _ -> Int64 in throw SQLiteError(call: "", code: 1, message: "") }
    }
    #expect(try connection.rows(query, Int64(1)) { try $0.integer(0) } == [1])
    // A statement that is kept has no value any more.
    #expect(connection.expandedStatements.contains("SELECT x FROM t WHERE x <= NULL"))
  }

  @Test("A query passes values of all types, and the names of columns that were added meanwhile") func query() throws {
    let connection = try fixture.connection()
    try connection.execute("CREATE TABLE t (x); CREATE TABLE u (y)")
    try connection.run("INSERT INTO t VALUES (NULL), (?), (?), (?), (?)", Int64(-1), 0.5, "é", [0, 255] as [UInt8])
    try connection.run("INSERT INTO u VALUES (1)")
    var values: [Value] = []
    try connection.query("SELECT x FROM t WHERE x IS NOT ? ORDER BY rowid", ["é"]) { row, names in
      #expect(names == ["x"])
      values += row.values
      return values.count < 3
    }
    #expect(values == [.null, .integer(-1), .real(0.5)])
    values = []
    for names in [["x", "y"], ["x", "z", "y"]] {
      try connection.query("SELECT t.*, u.* FROM t, u WHERE typeof(x) = 'blob'", []) { row, found in
        #expect(found == names)
        values += row.values
        return true
      }
      if names.count == 2 { try connection.execute("ALTER TABLE t ADD COLUMN z") }
    }
    let blob = Value.blob([0, 255])
    #expect(values == [blob, .integer(1), blob, .null, .integer(1)])
  }

  @Test("Opens a file that others can read if it need not be private") func openFile() throws {
    try fixture.connection().execute("CREATE TABLE t (x)")
    chmod(fixture.database, 0o644)
    #expect(throws: SQLiteError.self) { _ = try fixture.connection() }
    let connection = try Connection(path: fixture.database, readOnly: true, isPrivate: false)
    #expect(try connection.rows("SELECT COUNT(*) FROM t") { try $0.integer(0) } == [0])
  }

  @Test("Counts the rows a statement changed") func countsTheRowsAStatementChanged() throws {
    let connection = try fixture.connection()
    try connection.execute("CREATE TABLE t (x)")
    #expect(try connection.run("INSERT INTO t VALUES (1), (2), (3)") == 3)
    #expect(try connection.run("DELETE FROM t WHERE x > ?", Int64(1)) == 2)
    #expect(try connection.run("DELETE FROM t WHERE x > ?", Int64(1)) == 0)
  }
}

extension Connection {
  /// The statements that are kept, with the values that are bound to them.
  fileprivate var expandedStatements: [String] {
    var texts: [String] = []
    var statement = sqlite3_next_stmt(handle, nil)
    while let current = statement {
      if let text = sqlite3_expanded_sql(current) {
        texts.append(String(cString: text))
        sqlite3_free(text)
      }
      statement = sqlite3_next_stmt(handle, current)
    }
    return texts
  }
}
