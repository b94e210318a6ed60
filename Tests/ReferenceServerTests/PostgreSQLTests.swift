// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import ReferenceProtocol
import ServerTestSupport
import Synchronization
import Testing

@testable import TokenServerCore
@testable import TokenServerStore

/// What several servers on one database need from it.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SharedStoreTests {
  private let first: TemporaryStore
  private let second: Store

  init() throws {
    first = try TemporaryStore(.postgreSQL)
    second = try first.another(connections: 2)
  }

  private final class Count: Sendable {
    let inside = Atomic<Int>(0)
    let together = Atomic<Int>(0)
  }

  private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    var isSet: Bool { value.load(ordering: .acquiring) }

    func set() { value.store(true, ordering: .releasing) }
  }

  private func server(_ store: Store) throws -> String { try #require(store.sharedBy?.server) }

  @Test("Values of all kinds are read as they were written, with empty ones and NULL") func values() async throws {
    let values: [[SQLValue]] = [
      [.text("p"), .text(""), .blob([]), .null, .integer(.max)],
      [.text("q\u{1F600}'"), .text("a\nb"), .blob([0, 255]), .blob([0]), .integer(.min)],
    ]
    try await first.store.write { database in
      for row in values {
        try database.run(
          "INSERT INTO pin_change (id, client_id, profile_id, public_key, refresh_token_hash, created_at_ms) VALUES (?, ?, ?, ?, ?, 1)",
          [row[0], row[1], row[0], row[2], row[2]])
      }
      try database.run("INSERT INTO running (name, value) VALUES ('n', ?)", ["x"])
    }
    let read = try await second.read { database in
      try database.rows("SELECT id, client_id, public_key FROM pin_change ORDER BY id").map {
        [$0.value(of: "id"), $0.value(of: "client_id"), $0.value(of: "public_key")]
      }
    }
    #expect(read == values.map { Array($0[0...2]) })
    let numbers = try await second.read { database in
      try database.row(
        "SELECT CAST(? AS BIGINT) AS a, CAST(? AS BIGINT) AS b, CAST(? AS BYTEA) AS c",
        [Int64.min, Int64.max, SQLValue.null]
      )
      .map { [$0.value(of: "a"), $0.value(of: "b"), $0.value(of: "c")] }
    }
    #expect(numbers == [.integer(.min), .integer(.max), .null])
  }

  /// Fails if prepared statements are kept: their results have another column then.
  @Test("A server goes on when a later version adds columns to the tables") func addedColumn() async throws {
    let store = first.store
    try await store.write { _ = try $0.insert(.sample()) }
    #expect(try await store.read { try $0.transaction("t1") } != nil)
    let change = "ALTER TABLE mobile_auth_transaction ADD COLUMN later BIGINT"
    try TestPostgreSQL.query(change, in: first.url ?? "")
    for _ in 0..<8 { #expect(try await store.read { try $0.transaction("t1") } != nil) }
    _ = try await store.write { try $0.end(.sample(), .denied, now: Timestamp(1)) }
    #expect(try await second.read { try $0.transaction("t1") }?.state == .rejected)
  }

  @Test("Conflicting changes are repeated until each has happened once") func conflicts() async throws {
    try await first.store.write { try $0.setIssuer("0") }
    try await withThrowingTaskGroup { group in
      for store in [first.store, second, first.store, second] {
        group.addTask {
          for _ in 0..<25 {
            try await store.write { database in
              let number = try database.issuer().flatMap { Int($0) } ?? 0
              try database.setIssuer("\(number + 1)")
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await second.read { try $0.issuer() } == "100")
  }

  @Test("A transaction that waits too long for a connection is refused, and never runs") func deadline() async throws {
    let store = try Store(PostgreSQLAddress(first.url ?? ""), connections: 1, patience: .seconds(1))
    let (isHeld, isReleased) = (Flag(), Flag())
    let holder = Task {
      // Where the machine is so busy that the first one, too, waits too long, another one is not refused.
      let end = ContinuousClock.now + .seconds(60)
      while true {
        do {
          return try await store.read { _ in
            isHeld.set()
            let deadline = ContinuousClock.now + .seconds(60)
            while !isReleased.isSet, ContinuousClock.now < deadline { usleep(1000) }
          }
        } catch is StorageUnavailableError where ContinuousClock.now < end {
          try await Task.sleep(for: .milliseconds(10))
        }
      }
    }
    try await eventually("the connection is in use") { isHeld.isSet }
    let late = Task { try await store.write { try $0.setIssuer("late") } }
    try await eventually("a transaction waits for the connection") { store.waiting > 0 }
    try await Task.sleep(for: .milliseconds(1100))
    isReleased.set()
    let error = await #expect(throws: StorageUnavailableError.self) { try await late.finished() }
    #expect(error?.reason == "busy")
    try await holder.finished()
    // By the other store of the same database, which waits as long as a busy machine needs.
    #expect(try await first.store.read { try $0.issuer() } == nil)
    store.close()
  }

  @Test("A proof is used once, at whichever server") func proofs() async throws {
    let stores = [first.store, second]
    let uses = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<16 {
        group.addTask { try await stores[number % 2].writeStatement { try $0.use([1, 2, 3], until: Timestamp(1000)) } }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(uses == 1)
    _ = try await first.store.write { try $0.forgetShared(now: Timestamp(1001)) }
    #expect(try await second.writeStatement { try $0.use([1, 2, 3], until: Timestamp(2000)) })
    // The next use is on a connection that the database has closed.
    _ = try await first.store.read { database in
      try database.rows(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        """
      ).count
    }
    #expect(try await second.writeStatement { try $0.use([4], until: Timestamp(2000)) })
  }

  @Test("One server at a time runs a body; the lease of one that ended is free") func leases() async throws {
    // On a busy machine the bodies take longer than ten seconds, after which a server counts as ended.
    let now = ServerClock.system.now() + .seconds(3600)
    for store in [first.store, second] {
      let id = try server(store)
      _ = try await store.write { try $0.noteServer(id, now: now) }
    }
    let count = Count()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<12 {
        let store = number % 2 == 0 ? first.store : second
        group.addTask {
          try await store.exclusively("x") {
            if count.inside.add(1, ordering: .relaxed).newValue > 1 { count.together.add(1, ordering: .relaxed) }
            try await Task.sleep(for: .milliseconds(5))
            count.inside.subtract(1, ordering: .relaxed)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(count.together.load(ordering: .relaxed) == 0)
    let (one, other) = (try server(first.store), try server(second))
    #expect(try await first.store.write { try $0.acquireLease("y", owner: one, now: now) })
    #expect(try await !second.write { try $0.acquireLease("y", owner: other, now: now) })
    #expect(try await first.store.write { try $0.acquireLease("y", owner: one, now: now) })
    // The first server has not written the time for ten seconds.
    let later = now + .seconds(11)
    _ = try await second.write { try $0.noteServer(other, now: later) }
    #expect(try await second.write { try $0.acquireLease("y", owner: other, now: later) })
  }

  @Test("Without its lease a server changes nothing") func lostLease() async throws {
    let (one, other, now) = (try server(first.store), try server(second), ServerClock.system.now())
    _ = try await first.store.write { try $0.noteServer(one, now: now) }
    await #expect(throws: StorageUnavailableError.self) {
      try await first.store.exclusively("x") {
        try await first.store.write { try $0.setIssuer("held") }
        // The others take the first server for ended.
        let later = now + .seconds(11)
        let taken = Task.detached { [second] in
          try await second.write { try $0.acquireLease("x", owner: other, now: later) }
        }
        #expect(try await taken.finished())
        try await first.store.write { try $0.setIssuer("lost") }
      }
    }
    #expect(try await second.read { try $0.issuer() } == "held")
    // The end of the lost lease did not end the other server's.
    #expect(try await second.write { try $0.hasLease("x", owner: other) })
  }

  @Test("Running servers are counted, and forgotten with their devices") func members() async throws {
    let (one, other, device) = (try server(first.store), try server(second), ClientID("D"))
    #expect(try await first.store.write { try $0.noteServer(one, now: Timestamp(0)) } == (true, 1))
    #expect(try await second.write { try $0.noteServer(other, now: Timestamp(5000)) } == (true, 2))
    try await first.store.write { try $0.noteConnections([device: true], server: one) }
    try await first.store.write { try $0.noteConnections([device: true], server: one) }
    #expect(try await second.read { try $0.isConnected(device, now: Timestamp(5000)) })
    #expect(try await !second.read { try $0.isConnected(device, now: Timestamp(10_001)) })
    #expect(try await second.write { try $0.noteServer(other, now: Timestamp(12_000)) } == (false, 1))
    _ = try await second.write { try $0.forgetShared(now: Timestamp(61_000)) }
    #expect(try await first.store.write { try $0.noteServer(one, now: Timestamp(61_000)) } == (true, 1))
    #expect(try await !second.read { try $0.isConnected(device, now: Timestamp(61_000)) })
  }

  @Test("Events reach the other servers, with those of commands") func events() async throws {
    let (one, other) = (try server(first.store), try server(second))
    let event = SharedEvent(.init(clientID: ClientID("D"), event: DeviceEvent(.request)), isMailed: true)
    let command = Effects(notices: [.init(clientID: ClientID("E"), event: DeviceEvent(.deviceRevoked))])
    try await first.store.write { try $0.post([event], from: one, now: Timestamp(1)) }
    try await first.store.write { try $0.post(command, now: Timestamp(1)) }
    _ = try await first.store.write {
      try $0.run("INSERT INTO outbox (client_id, event, origin) VALUES ('F', ?, 'x')", [[UInt8](" {".utf8)])
    }
    let (own, others) = (
      try await first.store.read { try $0.events(after: 0, notFrom: one) },
      try await second.read { try $0.events(after: 0, notFrom: other) }
    )
    #expect(own.map(\.event) == [SharedEvent(command.notices[0], isMailed: false), nil])
    #expect(others.map(\.event) == [event, SharedEvent(command.notices[0], isMailed: false), nil])
    #expect(try await second.read { try $0.events(after: others[1].number, notFrom: other) }.count == 1)
    // The hint of the command's event is taken over once, that of the server's has been published.
    #expect(try await second.write { try $0.takeHint(ofEvent: others[1].number) })
    #expect(try await !first.store.write { try $0.takeHint(ofEvent: others[1].number) })
    #expect(try await !second.write { try $0.takeHint(ofEvent: others[0].number) })
    let forOne = try await second.read { try $0.events(after: 0, notFrom: other, for: [ClientID("D"), ClientID("G")]) }
    #expect(forOne.map(\.event) == [event])
    let unwanted = try await second.read { try $0.events(after: 0, notFrom: other) { _, _ in false } }
    #expect(unwanted.map(\.number) == others.map(\.number) && unwanted.allSatisfy { $0.event == nil })
  }
}
