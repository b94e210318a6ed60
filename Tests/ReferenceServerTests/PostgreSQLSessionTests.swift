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

  @Test("A standby, which refuses to begin a serializable transaction, is unavailable") func standby() throws {
    let (error, attempts) = try failure("0A000", hasBegun: false)
    #expect((error as? StorageUnavailableError)?.reason == "SQLSTATE 0A000" && attempts == 1, "\(error)")
  }

  @Test("A statement that is not supported may be outdated: the change is repeated once") func outdated() throws {
    let (error, attempts) = try failure("0A000", hasBegun: true)
    #expect(error is PostgreSQLError && attempts == 2, "\(error)")
  }

  @Test("A change that may be committed is not repeated: the database is unavailable") func unknown() throws {
    let (error, attempts) = try failure("40003", hasBegun: true)
    #expect((error as? StorageUnavailableError)?.reason == "SQLSTATE 40003" && attempts == 1, "\(error)")
  }
}
