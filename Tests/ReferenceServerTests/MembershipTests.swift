// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Dispatch
import HTTPTypes
import Hummingbird
import Logging
import RecordedLog
import ReferenceProtocol
import ServerTestSupport
import Synchronization
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerMetrics
@testable import TokenServerStore

/// One of several servers on a database, while its requests or the other servers keep it waiting.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MembershipTests {
  private let other: TemporaryStore
  /// The store of the server, with one connection for requests.
  private let store: Store

  init() throws {
    other = try TemporaryStore(.postgreSQL)
    store = try other.another(connections: 1)
  }

  private func membership() throws -> Membership {
    Membership(store: store, sharing: try #require(store.sharedBy), clock: .system, log: RecordedLog().logger)
  }

  private func start(_ membership: Membership) -> Task<Void, any Error> {
    Task { try await Membership.Heartbeats(membership: membership, hub: EventHub(), mailboxes: nil).run() }
  }

  @Test("A server counts as running, and reads, while its requests use all their connections") func full() async throws
  {
    let (held, released) = (AsyncSignal(), DispatchSemaphore(value: 0))
    defer { released.signal() }
    let holder = Task { [store] in
      try await store.read { _ in
        held.ring()
        _ = released.wait(timeout: .now() + 60)
      }
    }
    await held.wait(for: .seconds(60))
    let heartbeats = start(try membership())
    var running = 0
    try await eventually("the server counts as running") {
      try await Task.sleep(for: .milliseconds(10))
      running = try await other.store.read { try $0.runningServers(now: ServerClock.system.now()) }
      return running != 0
    }
    #expect(running == 1)
    // Fails by the time limit if it waits for the holder.
    #expect(try await store.readBesideRequests { try $0.openTransactionCount() } == 0)
    released.signal()
    try await holder.finished()
    heartbeats.cancel()
    try await heartbeats.finished()
    store.close()
  }

  @Test("A server that has stored no heartbeat for ten seconds is not ready, as the others take it for ended")
  func late() async throws {
    let server = try membership()
    let readiness = Readiness()
    readiness.begin()
    func status(at uptime: Duration) async -> HTTPResponse.Status {
      let operations = OperationsInterface(
        store: store, hub: EventHub(), readiness: readiness, registry: PrometheusRegistry(), clock: .system,
        countsAsRunning: { server.countsAsRunning(at: uptime) })
      return await operations.ready().status
    }
    let before = Uptime.now()
    #expect(await status(at: before + .seconds(3600)) == .ok)
    try await server.join()
    let after = Uptime.now()
    #expect(await status(at: before + .milliseconds(9999)) == .ok)
    #expect(await status(at: after + .seconds(10)) == .serviceUnavailable)
    try await server.join()
    #expect(await status(at: after + .milliseconds(9999)) == .ok)
    store.close()
  }

  @Test("Connected devices are stored in transactions of at most 500") func batches() async throws {
    let (server, url) = (try membership(), try #require(other.url))
    for number in 0..<1201 { server.note(ClientID("C\(number)"), isConnected: true) }
    let heartbeats = start(server)
    let count = "SELECT COUNT(*), COUNT(DISTINCT CAST(xmin AS TEXT)) FROM connected_device"
    try await eventually("all devices are stored") {
      try TestPostgreSQL.query(count, in: url).hasPrefix("1201|") ? () : nil
    }
    #expect(try TestPostgreSQL.query(count, in: url) == "1201|3\n")
    heartbeats.cancel()
    try await heartbeats.finished()
    store.close()
  }

  @Test("A lease whose end was not stored is released later, but not while a task uses its name") func leases()
    async throws
  {
    let (one, another) = (try #require(store.sharedBy?.server), try #require(other.store.sharedBy?.server))
    // On a busy machine the test takes longer than ten seconds.
    let now = ServerClock.system.now() + .seconds(3600)
    _ = try await other.store.write { try $0.noteServer(another, now: now) }
    #expect(try await other.store.write { try $0.acquireLease("x", owner: another, now: now) })
    // Canceled while it waits for the other server.
    let canceled = Task { [store] in try await store.exclusively("x") {} }
    canceled.cancel()
    await #expect(throws: CancellationError.self) { try await canceled.finished() }
    try await other.store.write { try $0.releaseLease("x", owner: another) }

    // Fails by the time limit if it waits for the task that holds the name.
    try await store.exclusively("x") {
      try await store.releaseLeases()
      #expect(try await store.write { try $0.hasLease("x", owner: one) })
    }
    #expect(try await store.write { try $0.acquireLease("x", owner: one, now: now) })
    try await store.releaseLeases()
    #expect(try await !store.write { try $0.hasLease("x", owner: one) })
    store.close()
  }

  @Test("Tasks that wait for another server wait no longer together than one alone") func patience() async throws {
    let hasty = try Store(PostgreSQLAddress(other.url ?? ""), connections: 1, patience: .seconds(1))
    let another = try #require(other.store.sharedBy?.server)
    // On a busy machine the test takes longer than ten seconds.
    let now = ServerClock.system.now() + .seconds(3600)
    _ = try await other.store.write { try $0.noteServer(another, now: now) }
    #expect(try await other.store.write { try $0.acquireLease("x", owner: another, now: now) })
    var time = Duration.seconds(60)
    // One after the other, they would take 60 seconds. One of three times is enough: a busy machine may be late.
    for _ in 1...3 where time >= .seconds(30) {
      let start = ContinuousClock.now
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<60 {
          group.addTask {
            await #expect(throws: StorageUnavailableError.self) {
              try await hasty.exclusively("x") { Issue.record("ran") }
            }
          }
        }
      }
      time = ContinuousClock.now - start
    }
    #expect(time < .seconds(30))
    hasty.close()
    store.close()
  }

  @Test("A server whose clock is minutes ahead takes the others for running, and forgets nothing of theirs")
  func wrongClock() async throws {
    let another = try #require(other.store.sharedBy?.server)
    let now = ServerClock.system.now()
    // On a busy machine the test takes longer than the ten seconds for which a server counts as running.
    _ = try await other.store.write { try $0.noteServer(another, now: now + .seconds(60)) }
    let proof = [UInt8](repeating: 1, count: 16)
    #expect(try await other.store.write { try $0.use(proof, until: now + .seconds(300)) })
    #expect(try await other.store.write { try $0.acquireLease("x", owner: another, now: now) })
    let log = RecordedLog()
    let ahead = ServerClock { ServerClock.system.now() + .seconds(360) }
    let membership = Membership(store: store, sharing: try #require(store.sharedBy), clock: ahead, log: log.logger)
    try await membership.join()
    #expect(log.all.count == 1 && log.all.allSatisfy { $0.contains("clocks") }, "\(log.all)")
    #expect(membership.servers.current == 2)
    _ = try await store.write { try $0.forgetShared(now: ahead.now()) }
    #expect(try await !store.write { try $0.use(proof, until: ahead.now() + .seconds(300)) })
    let own = try #require(store.sharedBy?.server)
    #expect(try await !store.write { try $0.acquireLease("x", owner: own, now: ahead.now()) })
    store.close()
  }

  @Test("An event that is posted before the first look is announced") func early() async throws {
    let (device, hub) = (ClientID("D"), EventHub())
    let start = hub.events(of: device, after: nil).cursor
    let sharing = try #require(EventSharing(store: store, mailboxes: nil, clock: .system, log: RecordedLog().logger))
    let announcer = ServerAnnouncer(hub: hub, callbacks: AsyncSignal(), log: RecordedLog().logger)
    func post(_ id: String) async throws {
      let event = SharedEvent(
        .init(clientID: device, event: DeviceEvent(.request, transactionID: id)), isMailed: true)
      try await other.store.write { try $0.post([event], from: "", now: ServerClock.system.now()) }
    }
    try await post("before")
    let reader = try await EventSharing.Reader(of: sharing, announcer: announcer)
    try await post("after")
    let running = Task { try await reader.run() }
    try await eventually("the event is announced") { !hub.events(of: device, after: start).events.isEmpty }
    #expect(hub.events(of: device, after: start).events.map(\.transactionID) == ["after"])
    running.cancel()
    _ = try? await running.finished()
    store.close()
  }

  @Test("One warning is logged when events for the other servers are dropped") func dropped() throws {
    let log = RecordedLog()
    let sharing = try #require(EventSharing(store: store, mailboxes: nil, clock: .system, log: log.logger))
    let event = SharedEvent(.init(clientID: ClientID("D"), event: DeviceEvent(.request)), isMailed: true)
    for _ in 0..<EventSharing.mostWaiting { sharing.post(event) }
    #expect(log.all.isEmpty)
    for _ in 0..<3 { sharing.post(event) }
    #expect(log.all.count == 1 && log.all.allSatisfy { $0.contains("dropped") }, "\(log.all)")
    store.close()
  }

  /// Reports each round of the expiry timer that found something due.
  private struct Rounds: Announcer {
    let round: AsyncStream<ContinuousClock.Instant>.Continuation
    let log = RecordedLog().logger
    var deviceLog: DeviceLog { DeviceLog(log) }

    func reaches(_ clientID: ClientID) -> Bool { false }
    func announce(_ effects: Effects) { round.yield(.now) }
  }

  @Test("While another server works on all that has expired, the expiry timer pauses") func expiry() async throws {
    try await other.store.write { try $0.insert(.sample(expiresAt: Timestamp(10))) }
    let (held, released) = (AsyncSignal(), DispatchSemaphore(value: 0))
    defer { released.signal() }
    let holder = Task { [other] in
      try await other.store.write { database in
        _ = try database.row("SELECT id FROM mobile_auth_transaction FOR UPDATE")
        held.ring()
        _ = released.wait(timeout: .now() + 60)
      }
    }
    await held.wait(for: .seconds(60))
    let (rounds, round) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
    let timer = ExpiryTimer(
      store: store, announcer: Rounds(round: round), clock: ServerClock { Timestamp(1000) }, retentionHours: 1)
    let running = Task { try await timer.run() }
    let count = Atomic(0)
    let times = await rounds.elements(until: "the third round") { _ in
      count.add(1, ordering: .relaxed).newValue == 3
    }
    try #require(times.count == 3)
    #expect(times[2] - times[0] >= .milliseconds(500))
    released.signal()
    try await holder.finished()
    running.cancel()
    try await running.finished()
    store.close()
  }
}
