// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import Testing
import TokenServerCore

@testable import TokenServerStore

/// What exactly one of several servers does, on one PostgreSQL database; also with the statement for a database that
/// has no `SKIP LOCKED` in serializable transactions.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct LockedRowTests {
  private static let count = 40
  private let first: TemporaryStore
  private let stores: [Store]

  init() throws {
    first = try TemporaryStore(.postgreSQL)
    stores = [first.store, try first.another(connections: 2), try first.another(connections: 2)]
  }

  /// The statements of another database, run by PostgreSQL.
  private struct Waiting: SQLTransaction {
    let original: any SQLTransaction
    let lockingRows = "FOR UPDATE"

    var dialect: SQLDialect { original.dialect }

    func execute(_ statement: String, _ parameters: [any SQLParameter]) throws -> Int {
      try original.execute(statement, parameters)
    }

    func query(_ statement: String, _ parameters: [any SQLParameter], _ visit: (any SQLRow) throws -> Bool) throws {
      try original.query(statement, parameters, visit)
    }
  }

  @Test("Requests expire once", arguments: [true, false])
  func once(skipsLockedRows: Bool) async throws {
    @Sendable func records(_ database: TokenServerStore.Database) -> TokenServerStore.Database {
      skipsLockedRows ? database : Database(Waiting(original: database.transaction))
    }
    try await stores[0].write { database in
      for number in 0..<Self.count {
        try database.insert(.sample("t\(number)", expiresAt: Timestamp(9)))
      }
    }
    let ended = try await withThrowingTaskGroup(of: Int.self) { group in
      for store in stores {
        group.addTask {
          try await store.write { try records($0).expireTransactions(now: Timestamp(10)) }.endings.count
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(ended == Self.count)
  }

  @Test("Each callback is claimed once") func claims() async throws {
    try await stores[0].write { database in
      for number in 0..<Self.count {
        try database.insertCallback("t\(number)", url: "https://portal.example/", of: "portal", dueAt: Timestamp(9))
      }
    }
    let claimed = try await withThrowingTaskGroup(of: [String].self) { group in
      for store in stores {
        group.addTask {
          try await store.writeStatement { database in
            try database.claimCallbacks(
              dueBy: Timestamp(20), until: Timestamp(1000), without: [], portals: [], limit: 25)
          }.jobs.map(\.transactionID)
        }
      }
      return try await group.reduce([], +)
    }
    #expect(Set(claimed).count == claimed.count && claimed.count >= 25)
  }

  @Test(
    "The database's version says how it locks",
    arguments: [
      ("15.14 (Debian 15.14-0+deb12u1)", true), ("17.6", true), ("13.0.0", true), ("15.12-YB-2025.1.0.0-b168", false),
      ("11.2-YB-2.20.0.0-b0", false),
    ])
  func version(_ version: String, skipsLockedRows: Bool) {
    #expect(PostgreSQLTransaction.skipsLockedRows(version) == skipsLockedRows)
  }
}
