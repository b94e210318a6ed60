// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import TokenServerStore

/// Which errors of PostgreSQL are the database's, and which repeat a change.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PostgreSQLSessionTests {
  private let temporary: TemporaryStore

  init() throws { temporary = try TemporaryStore(.postgreSQL) }

  /// Runs a change that fails.
  /// - Parameter hasBegun: whether it fails after its first statement.
  /// - Returns: the error, and how often the change ran.
  private func failure(_ state: String, hasBegun: Bool) throws -> (error: any Error, attempts: Int) {
    let session = PostgreSQLSession(try PostgreSQLAddress(temporary.url ?? ""))
    var attempts = 0
    let error = #expect(throws: (any Error).self) {
      try session.transaction(.write, within: .seconds(60)) { transaction -> Void in
        attempts += 1
        if hasBegun { _ = try transaction.execute("DELETE FROM hold", []) }
        throw PostgreSQLError(state: state, message: "")
      }
    }
    return (try #require(error), attempts)
  }

  @Test(
    "At a standby, which changes nothing, the change is repeated once on a new connection",
    arguments: [("0A000", false), ("25006", true)])
  func standby(state: String, hasBegun: Bool) throws {
    let (error, attempts) = try failure(state, hasBegun: hasBegun)
    #expect((error as? StorageUnavailableError)?.reason == "SQLSTATE \(state)" && attempts == 2, "\(error)")
  }

  @Test("The connection to a standby is not used again") func newConnection() throws {
    let session = PostgreSQLSession(try PostgreSQLAddress(temporary.url ?? ""))
    var processes: [SQLValue] = []
    try session.transaction(.write, within: .seconds(60)) { transaction in
      try transaction.query("SELECT CAST(pg_backend_pid() AS BIGINT) AS pid", []) { row in
        processes.append(row.value(of: "pid"))
        return true
      }
      if processes.count == 1 { throw PostgreSQLError(state: "25006", message: "") }
    }
    #expect(processes.count == 2 && processes[0] != processes[1])
  }

  @Test("A change that goes on after an error of a statement is not committed") func ignoredError() throws {
    let session = PostgreSQLSession(try PostgreSQLAddress(temporary.url ?? ""))
    let error = #expect(throws: PostgreSQLError.self) {
      try session.transaction(.write, within: .seconds(60)) { transaction -> Void in
        _ = try? transaction.execute("DELETE FROM nothing_of_this_name", [])
      }
    }
    #expect(error?.state == "25P02")
  }

  @Test("A statement that is not supported may be outdated: the change is repeated once") func outdated() throws {
    let (error, attempts) = try failure("0A000", hasBegun: true)
    #expect(error is PostgreSQLError && attempts == 2, "\(error)")
  }

  @Test("A change that may be committed is not repeated: the database is unavailable") func unknown() throws {
    let (error, attempts) = try failure("40003", hasBegun: true)
    #expect((error as? StorageUnavailableError)?.reason == "SQLSTATE 40003" && attempts == 1, "\(error)")
  }

  @Test("A change that conflicts 20 times waits less than a second") func conflicts() throws {
    let session = PostgreSQLSession(try PostgreSQLAddress(temporary.url ?? ""))
    // A busy machine can stop for longer, but not each time.
    let isSoon = try (0..<10).contains { _ in
      var left = 20
      let began = ContinuousClock.now
      try session.transaction(.write, within: .seconds(60)) { _ in
        left -= 1
        if left >= 0 { throw PostgreSQLError(state: "40001", message: "") }
      }
      return ContinuousClock.now - began < .seconds(1)
    }
    #expect(isSoon)
  }

  @Test("The URL's connect_timeout limits the wait for a database that does not answer") func connectTimeout() throws {
    let silent = try CallbackListener(answering: false)
    defer { silent.end() }
    let address = try PostgreSQLAddress("postgresql://a@127.0.0.1:\(silent.port)/b?connect_timeout=2")
    // A busy machine can stop for longer than the difference to the default of 5 s, but not each time.
    let isInTime = (0..<10).contains { _ in
      let began = ContinuousClock.now
      #expect(throws: PostgreSQLError.self) { _ = try PostgreSQLConnection(to: address) }
      return ContinuousClock.now - began < .seconds(4)
    }
    #expect(isInTime)
  }
}
