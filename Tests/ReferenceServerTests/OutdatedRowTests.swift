// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import Testing

@testable import TokenServerCore
@testable import TokenServerStore

/// What a server on PostgreSQL deletes and checks by itself.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct OutdatedRowTests {
  private let temporary: TemporaryStore
  private var store: Store { temporary.store }

  init() throws { temporary = try TemporaryStore(.postgreSQL) }

  @Test("Used proofs are deleted in batches, the valid ones never") func batches() async throws {
    try await store.write { database in
      for number in 0..<Database.batch + 1 { _ = try database.use(bigEndian(number), until: Timestamp(1000)) }
      _ = try database.use([1], until: Timestamp(1001))
    }
    func count() async throws -> Int {
      try await store.read { try $0.row("SELECT COUNT(*) AS number FROM used_proof")?.count("number") ?? -1 }
    }
    #expect(try await store.write { try $0.forgetShared(now: Timestamp(1001)) })
    #expect(try await count() == 2)
    #expect(try await !store.write { try $0.forgetShared(now: Timestamp(1001)) })
    #expect(try await count() == 1)
  }

  @Test("Outdated rows of each table are deleted in batches") func outdated() async throws {
    try await store.write { database in
      for number in 0..<Database.batch + 1 {
        try database.run("INSERT INTO pin_attempt VALUES ('C', 'P', ?, '', 0)", ["key\(number)"])
      }
    }
    #expect(try await store.write { try $0.forget(endedBefore: Timestamp(1), now: Timestamp(1)) })
    #expect(try await !store.write { try $0.forget(endedBefore: Timestamp(1), now: Timestamp(1)) })
    #expect(try await store.read { try $0.row("SELECT 1 FROM pin_attempt") == nil })
  }

  @Test("An unreadable open transaction is found before a start, and set aside") func unreadable() async throws {
    try await store.write { try $0.insert(.sample("t", expiresAt: Timestamp(9))) }
    #expect(try await !store.read { try $0.hasUnreadable() })
    try await store.write { _ = try $0.run("UPDATE mobile_auth_transaction SET method = 'x'") }
    #expect(try await store.read { try $0.hasUnreadable() })
    #expect(try await store.read { try $0.unreadableRows() } == [])
    let effects = try await store.write { try $0.setAsideUnreadable(now: Timestamp(10)) }
    #expect(effects.warnings.count == 1)
    #expect(try await !store.read { try $0.hasUnreadable() })
  }

  private func bigEndian(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
  }
}
