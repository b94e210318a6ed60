// SPDX-License-Identifier: Apache-2.0
import SQLite
import Testing

@Suite(.timeLimit(.minutes(5))) final class `Migrations` {
  private struct Regret: Error {}
  private typealias Step = (borrowing Connection) throws -> Void

  private let playground: Playground
  private let connection: Connection
  private let first: Step = { try $0.execute("CREATE TABLE t (x INTEGER)") }
  private let second: Step = { try $0.execute("INSERT INTO t VALUES (2)") }
  private let third: Step = { try $0.execute("INSERT INTO t VALUES (3)") }

  init() throws {
    playground = try Playground()
    connection = try playground.connection()
  }

  @Test func `Run once each, in order, from any format`() throws {
    try connection.migrate([first])
    #expect(try numbers() == [])
    for _ in 1...2 {
      try connection.migrate([first, second, third])
      #expect(try numbers() == [2, 3])
    }
  }

  @Test func `That fail leave the file unchanged`() throws {
    try connection.migrate([first])
    #expect(throws: Regret.self) { try connection.migrate([first, second, { _ in throw Regret() }]) }
    #expect(try numbers() == [])
    try connection.migrate([first, second])
    #expect(try numbers() == [2])
  }

  @Test(arguments: [3, -1])
  func `Do not touch a file of a format they do not know`(format: Int) throws {
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
