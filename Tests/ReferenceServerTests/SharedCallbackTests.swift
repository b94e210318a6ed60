// SPDX-License-Identifier: Apache-2.0
import Testing
import TokenServerCore

@testable import TokenServerStore

/// Callbacks that several servers on one PostgreSQL database deliver.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SharedCallbackTests {
  private let first: TemporaryStore
  private let second: Store

  init() throws {
    first = try TemporaryStore(.postgreSQL)
    second = try first.another(connections: 2)
  }

  @Test("A callback is claimed by one server, and due again if that one ends") func callbacks() async throws {
    try await first.store.write { database in
      for number in 0..<20 {
        try database.insertCallback("t\(number)", url: "https://portal.example/", of: "p", dueAt: Timestamp(1))
      }
    }
    let stores = [first.store, second]
    let claimed = try await withThrowingTaskGroup(of: [String].self) { group in
      for number in 0..<4 {
        group.addTask {
          try await stores[number % 2].writeStatement {
            try $0.claimCallbacks(dueBy: Timestamp(10), until: Timestamp(99), without: [], portals: [], limit: 8)
              .jobs.map(\.transactionID)
          }
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(Set(claimed).count == claimed.count && claimed.count == 20)
    try await first.store.write { database in
      let jobs = try database.callbacks(dueBy: Timestamp(99), without: [], limit: 99)
      #expect(jobs.count == 20)
    }
    let again = try await second.writeStatement {
      try $0.claimCallbacks(dueBy: Timestamp(99), until: Timestamp(200), without: [], portals: [], limit: 99)
    }
    #expect(again.jobs.count == 20 && again.unreadable == 0)
    #expect(again.jobs.allSatisfy { $0.dueAt == Timestamp(99) })
  }

  @Test("A server that was too slow changes nothing of a callback that another one has claimed")
  func lateOutcome() async throws {
    try await first.store.write {
      try $0.insertCallback("t", url: "https://portal.example/", of: "p", dueAt: Timestamp(1))
    }
    func claim(_ store: Store, at now: Int64, until: Int64) async throws -> CallbackJob {
      try #require(
        try await store.writeStatement {
          try $0.claimCallbacks(
            dueBy: Timestamp(now), until: Timestamp(until), without: [], portals: [], limit: 8)
        }.jobs.first)
    }
    let late = try await claim(first.store, at: 10, until: 99)
    let current = try await claim(second, at: 100, until: 200)
    try await first.store.writeStatement { try $0.postponeCallback(late, until: Timestamp(150)) }
    try await first.store.writeStatement { try $0.returnCallback(late) }
    #expect(try await second.read { try $0.nextCallback(after: Timestamp(0)) } == Timestamp(200))
    try await second.writeStatement { try $0.postponeCallback(current, until: Timestamp(300)) }
    let job = try #require(
      try await second.read { try $0.callbacks(dueBy: Timestamp(999), without: [], limit: 8) }.first)
    #expect(job.attempts == 1 && job.dueAt == Timestamp(300))
  }

  @Test("A claim leaves out an unreadable callback, and says so") func unreadableCallback() async throws {
    try await first.store.write { database in
      for (id, url) in [
        ("new", "https://portal.example/new"), ("bad", "no URL"), ("old", "https://portal.example/old"),
      ] {
        try database.insertCallback(id, url: url, of: "p", dueAt: Timestamp(id == "old" ? 1 : 2))
      }
    }
    let claimed = try await second.writeStatement {
      try $0.claimCallbacks(dueBy: Timestamp(10), until: Timestamp(99), without: [], portals: [], limit: 8)
    }
    #expect(claimed.jobs.map(\.transactionID) == ["old", "new"] && claimed.unreadable == 1)
    let effects = try await second.write { try $0.setAsideUnreadable(now: Timestamp(10)) }
    #expect(effects.warnings.count == 1)
    #expect(try await second.read { try $0.callbacks(dueBy: Timestamp(99), without: [], limit: 9).count } == 2)
  }
}
