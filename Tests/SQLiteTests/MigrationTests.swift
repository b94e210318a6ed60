// SPDX-License-Identifier: Apache-2.0
import SQLite
import Testing

@Suite("Migrations", .timeLimit(.minutes(5))) final class MigrationTests {
  private struct RollbackError: Error {}
  private typealias Step = (borrowing Connection) throws -> Void

  private let fixture: DatabaseFixture
  private let connection: Connection
  private let first: Step = { try $0.execute("CREATE TABLE t (x INTEGER)") }
  private let second: Step = { try $0.execute("INSERT INTO t VALUES (2)") }
  private let third: Step = { try $0.execute("INSERT INTO t VALUES (3)") }

  init() throws {
    fixture = try DatabaseFixture()
    connection = try fixture.connection()
  }

  @Test("Run once each, in order, from any format") func runOnceEachInOrderFromAnyFormat() throws {
    try connection.migrate([first])
    #expect(try numbers() == [])
    for _ in 1...2 {
      try connection.migrate([first, second, third])
      #expect(try numbers() == [2, 3])
    }
  }

  @Test("That fail leave the file unchanged") func thatFailLeaveTheFileUnchanged() throws {
    try connection.migrate([first])
    #expect(throws: RollbackError.self) { try connection.migrate([first, second, { _ in throw RollbackError() }]) }
    #expect(try numbers() == [])
    try connection.migrate([first, second])
    #expect(try numbers() == [2])
  }

  @Test("Do not touch a file of a format they do not know", arguments: [3, -1])
  func doNotTouchAFileOfAFormatTheyDoNotKnow(format: Int) throws {
    try connection.migrate([first, second])
    try connection.execute("PRAGMA user_version = \(format)")
    let error = #expect(throws: SQLiteError.self) { try connection.migrate([first, second]) }
    #expect(error?.message == "the file has format \(format), this program knows formats up to 2")
    #expect(try numbers() == [2])
  }

  private func numbers() throws -> [Int64] {
    try connection.rows("SELECT x FROM t ORDER BY x") { try $0.integer(0) }
  }
}
