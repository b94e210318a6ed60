// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import SQLite
import Testing

@testable import TokenServerStore

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct WriteQueueTests {
  private struct TestError: Error, Equatable {}

  @Test("Durable mode") func durableMode() async throws {
    let temporary = try TemporaryStore()
    let mode = try await temporary.store.write { database in
      (
        try database.row("PRAGMA synchronous")?.count("synchronous"),
        try database.row("PRAGMA journal_mode")?.text("journal_mode")
      )
    }
    #expect(mode.0 == 2 && mode.1 == "wal")
  }

  /// SQLite's temporary files are deleted right after they are made, but their names tell what they are.
  @Test("What a change may have to restore is in memory, not in a temporary file") func noTemporaryFile() async throws {
    let temporary = try TemporaryStore()
    try await temporary.store.write { database in
      for number in 1...500 {
        let id = "u\(number)" + String(repeating: "-", count: 1000)
        try database.run(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, [id])
      }
    }
    let open = try await temporary.store.write { database in
      try database.run(#"UPDATE "user" SET id = id || '-'"#, [])
      let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
      return descriptors.compactMap {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
      }
    }
    #expect(open.contains { $0.hasPrefix(temporary.path) })
    #expect(open.filter { $0.contains("etilqs_") } == [])
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

  /// The number of commits in the write-ahead log of a database file (https://sqlite.org/fileformat2.html#walformat).
  private static func commits(in path: String) throws -> Int {
    let log = [UInt8](try Data(contentsOf: URL(filePath: path + "-wal")))
    guard log.count > 32 else { return 0 }
    let pageSize = log[8..<12].reduce(0) { $0 << 8 | Int($1) }
    let frames = stride(from: 32, to: log.count, by: 24 + pageSize).filter { log[($0 + 8)..<($0 + 16)] == log[16..<24] }
    return frames.count { log[($0 + 4)..<($0 + 8)] != [0, 0, 0, 0] }
  }

  /// Fails if each change has a commit of its own, and if one that is not urgent is forgotten.
  @Test("Changes that are not urgent share the commit of the next urgent one") func notUrgent() async throws {
    let temporary = try TemporaryStore()
    let session = SQLiteSession(try Connection(path: temporary.path, isPrivate: false))
    let queue = WriteQueue(session, longestWait: .seconds(3600))
    @Sendable func insert(_ id: String, isUrgent: Bool) async throws {
      try await queue.write(isUrgent: isUrgent) {
        _ = try $0.execute(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, [id])
      }
    }
    try await insert("first", isUrgent: true)
    #expect(try Self.commits(in: temporary.path) == 1)
    try await withThrowingTaskGroup { group in
      for id in ["a", "b", "c"] { group.addTask { try await insert(id, isUrgent: false) } }
      try await eventually("three changes wait") { queue.count >= 3 }
      #expect(try Self.commits(in: temporary.path) == 1 && queue.dueCount == 0)
      try await insert("urgent", isUrgent: true)
      try await group.waitForAll()
    }
    #expect(try Self.commits(in: temporary.path) == 2)
    #expect(try DatabaseFile(temporary.path).number(#"SELECT COUNT(*) FROM "user""#) == 5)
  }

  @Test("What waits when the queue ends is committed, and later changes are refused") func end() async throws {
    let temporary = try TemporaryStore()
    let queue = WriteQueue(
      SQLiteSession(try Connection(path: temporary.path, isPrivate: false)), longestWait: .seconds(3600))
    @Sendable func insert(_ id: String) async throws {
      try await queue.write(isUrgent: false) {
        _ = try $0.execute(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, [id])
      }
    }
    async let waiting: Void = insert("waits")
    try await eventually("a change waits") { queue.count == 1 }
    queue.close()
    try await waiting
    await #expect(throws: StorageUnavailableError.self) { try await insert("late") }
    #expect(try DatabaseFile(temporary.path).texts(#"SELECT id FROM "user""#) == ["waits"])
  }

  @Test("A file without its store has no log beside it") func withoutStore() async throws {
    let temporary = try TemporaryStore()
    for id in ["a", "b"] {
      let store = try Store(path: temporary.path)
      try await store.write { _ = try $0.run(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, [id]) }
      _ = try await store.read { try $0.row(#"SELECT 1 FROM "user""#) != nil }
    }
    temporary.store.close()
    #expect(!FileManager.default.fileExists(atPath: temporary.path + "-wal"))
    #expect(try DatabaseFile(temporary.path).texts(#"SELECT id FROM "user" ORDER BY id"#) == ["a", "b"])
  }

  @Test("A trigger in the file changes nothing") func trigger() async throws {
    let temporary = try TemporaryStore()
    try DatabaseFile(temporary.path).execute(
      #"CREATE TRIGGER t AFTER INSERT ON "user" BEGIN DELETE FROM "user"; END"#)
    try await temporary.store.write { _ = try $0.run(#"INSERT INTO "user" (id, created_at_ms) VALUES ('u', 0)"#) }
    #expect(try DatabaseFile(temporary.path).texts(#"SELECT id FROM "user""#) == ["u"])
  }

  @Test("A change that is not urgent is committed soon, although no other one comes") func timer() async throws {
    let temporary = try TemporaryStore()
    for id in ["a", "b"] {
      try await temporary.store.write(isUrgent: false) {
        _ = try $0.run(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, 0)"#, [id])
      }
    }
    #expect(try DatabaseFile(temporary.path).number(#"SELECT COUNT(*) FROM "user""#) == 2)
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
