// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import GRDB
import Synchronization
import Testing

@testable import TokenServerStore

/// Counts the commits of a database.
private final class CommitCounter: TransactionObserver, Sendable {
  private let commits = Atomic(0)

  var count: Int { commits.load(ordering: .sequentiallyConsistent) }

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { true }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseDidCommit(_ database: GRDB.Database) { commits.add(1, ordering: .sequentiallyConsistent) }
  func databaseDidRollback(_ database: GRDB.Database) {}
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct WriteQueueTests {
  private struct TestError: Error, Equatable {}

  @Test("Durable mode") func durableMode() async throws {
    let temporary = try TemporaryStore()
    let mode = try await temporary.store.pool.write { database in
      (try Int.fetchOne(database, sql: "PRAGMA synchronous"), try String.fetchOne(database, sql: "PRAGMA journal_mode"))
    }
    #expect(mode.0 == 2)
    #expect(mode.1 == "wal")
  }

  @Test("A change that throws takes back only itself", arguments: Engine.allCases)
  func aChangeThatThrowsTakesBackOnlyItself(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let store = temporary.store
    await withTaskGroup { group in
      for number in 1...200 {
        group.addTask {
          do {
            try await store.write { database in
              try database.run(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, ["u\(number)"])
              if number % 2 == 0 { throw TestError() }
            }
            #expect(number % 2 == 1)
          } catch { #expect(error as? TestError == TestError() && number % 2 == 0) }
        }
      }
    }
    let count = try await store.read {
      try $0.row(#"SELECT COUNT(*) AS count FROM "user""#).map { try $0.count("count") }
    }
    #expect(count == 100)
  }

  @Test("A single change that throws is rolled back", arguments: Engine.allCases)
  func singleChange(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    await #expect(throws: TestError()) {
      try await temporary.store.write { database in
        try database.run(#"INSERT INTO "user" (id, created_at_ms) VALUES ('u', 0)"#)
        throw TestError()
      }
    }
    #expect(try await temporary.store.read { try $0.row(#"SELECT 1 FROM "user""#) == nil })
  }

  /// Fails if each change has a commit of its own, and if one that is not urgent is forgotten.
  @Test("Changes that are not urgent share the commit of the next urgent one") func notUrgent() async throws {
    let temporary = try TemporaryStore()
    let commits = CommitCounter()
    temporary.store.pool.add(transactionObserver: commits, extent: .databaseLifetime)
    let queue = WriteQueue(temporary.store.pool, longestWait: .seconds(3600))
    @Sendable func insert(_ id: String, isUrgent: Bool) async throws {
      try await queue.write(isUrgent: isUrgent) {
        try $0.execute(sql: #"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, arguments: [id])
      }
    }
    try await withThrowingTaskGroup { group in
      for id in ["a", "b", "c"] { group.addTask { try await insert(id, isUrgent: false) } }
      try await eventually("three changes wait") { queue.count >= 3 }
      #expect(commits.count == 0 && queue.dueCount == 0)
      try await insert("urgent", isUrgent: true)
      try await group.waitForAll()
    }
    #expect(commits.count == 1)
    #expect(try await temporary.store.pool.read { try Int.fetchOne($0, sql: #"SELECT COUNT(*) FROM "user""#) } == 4)
  }

  @Test("A change that is not urgent is committed soon, although no other one comes") func timer() async throws {
    let temporary = try TemporaryStore()
    for id in ["a", "b"] {
      try await temporary.store.write(isUrgent: false) {
        _ = try $0.run(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, [id])
      }
    }
    #expect(try await temporary.store.pool.read { try Int.fetchOne($0, sql: #"SELECT COUNT(*) FROM "user""#) } == 2)
  }

  @Test("The result comes after the commit", arguments: Engine.allCases) func theResultComesAfterTheCommit(
    in engine: Engine
  ) async throws {
    let temporary = try TemporaryStore(engine)
    let store = temporary.store
    try await withThrowingTaskGroup { group in
      for number in 1...50 {
        group.addTask {
          let id = "u\(number)"
          _ = try await store.write { try $0.run(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, [id]) }
          let isThere = try await store.read { try $0.row(#"SELECT 1 FROM "user" WHERE id = ?"#, [id]) != nil }
          #expect(isThere)
        }
      }
      try await group.waitForAll()
    }
  }
}
