// SPDX-License-Identifier: Apache-2.0
import SQLite
import Synchronization
import Testing

@Suite("A transaction", .timeLimit(.minutes(5))) struct TransactionTests {
  private struct RollbackError: Error {}

  private let fixture: DatabaseFixture

  init() throws { fixture = try DatabaseFixture() }

  @Test("Is committed completely or not at all") func isCommittedCompletelyOrNotAtAll() throws {
    let connection = try fixture.connection()
    try connection.execute("CREATE TABLE t (x INTEGER UNIQUE)")
    let sum = try connection.transaction { connection in
      try connection.run("INSERT INTO t VALUES (1)")
      try connection.run("INSERT INTO t VALUES (2)")
      return 3
    }
    #expect(sum == 3)
    #expect(throws: RollbackError.self) {
      try connection.transaction { connection in
        try connection.run("INSERT INTO t VALUES (3)")
        throw RollbackError()
      }
    }
    #expect(throws: SQLiteError.self) {
      try connection.transaction { connection in
        try connection.run("INSERT INTO t VALUES (4)")
        try connection.run("INSERT INTO t VALUES (1)")
      }
    }
    #expect(try numbers(connection) == [1, 2])
    try connection.transaction { try $0.run("INSERT INTO t VALUES (5)") }
    #expect(try numbers(try fixture.connection()) == [1, 2, 5])
  }

  @Test("That fails only at the commit has no effect") func thatFailsOnlyAtTheCommitHasNoEffect() throws {
    let connection = try fixture.connection()
    try connection.execute(
      """
      PRAGMA foreign_keys = ON; CREATE TABLE u (x INTEGER PRIMARY KEY);
      CREATE TABLE t (x INTEGER REFERENCES u DEFERRABLE INITIALLY DEFERRED)
      """)
    let error = #expect(throws: SQLiteError.self) {
      try connection.transaction { try $0.run("INSERT INTO t VALUES (1)") }
    }
    #expect(error?.call == "step COMMIT")
    #expect(try numbers(connection) == [])
    try connection.transaction { try $0.run("INSERT INTO u VALUES (1)") }
  }

  @Test("Waits for the transaction of another connection") func waitsForTheTransactionOfAnotherConnection() async throws
  {
    try fixture.connection().execute("CREATE TABLE t (x); INSERT INTO t VALUES (0)")
    let path = fixture.database
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          let connection = try Connection(path: path)
          // Longer than usual: on a busy machine another connection may not run meanwhile.
          try connection.execute("PRAGMA busy_timeout = 60000")
          for _ in 0..<50 {
            try connection.transaction { connection in
              let value = try connection.rows("SELECT x FROM t") { try $0.integer(0) }[0]
              try connection.run("UPDATE t SET x = ?", value + 1)
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try numbers(try fixture.connection()) == [200])
  }

  @Test("Isolates a reader's snapshot from another connection's writes")
  func isolatesAReadersSnapshotFromAnotherConnectionsWrites() throws {
    let reader = try fixture.connection()
    try reader.execute("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
    let writer = try fixture.connection()
    try writer.execute("PRAGMA busy_timeout = 0")
    let seen = try reader.snapshot { reader in
      let before = try numbers(reader)
      let error = #expect(throws: SQLiteError.self) {
        try writer.transaction { try $0.run("INSERT INTO t VALUES (2)") }
      }
      #expect(error?.description == "step COMMIT: database is locked (SQLite 5)")
      return [before, try numbers(reader)]
    }
    #expect(seen == [[1], [1]])
    try writer.transaction { try $0.run("INSERT INTO t VALUES (3)") }
    #expect(try numbers(reader) == [1, 3])
  }

  private func numbers(_ connection: borrowing Connection) throws -> [Int64] {
    try connection.rows("SELECT x FROM t ORDER BY x") { try $0.integer(0) }
  }
}
