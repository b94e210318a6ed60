// SPDX-License-Identifier: Apache-2.0
import Logging
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerHTTP
import TokenServerStore

/// Tells the other servers on the database that this one runs, and which devices are connected to it.
final class Membership: Sendable {
  private static let beatEvery = Duration.seconds(2)
  private static let forgetEvery = Duration.seconds(30)
  /// Requests expire early or late by as much.
  private static let largestClockDifference = Duration.seconds(5)
  /// The maximum number of devices in one transaction.
  private static let batch = 500

  /// How many servers run.
  let servers = ServerCount()
  private let store: Store
  private let sharing: Store.Sharing
  private let clock: ServerClock
  private let log: Logger
  /// Devices whose connection changed since it was last stored.
  private let changes = Mutex<[ClientID: Bool]>([:])
  private let changed = AsyncSignal()
  private let isClockWrong = Mutex(false)
  private let lastBeat = Mutex<Beat?>(nil)

  private struct Beat {
    /// The `Uptime` when it had been stored.
    let time: Duration
    /// Whether the number of servers was not taken from it.
    let isFirstAfterOutage: Bool
  }

  init(store: Store, sharing: Store.Sharing, clock: ServerClock, log: Logger) {
    self.store = store
    self.sharing = sharing
    self.clock = clock
    self.log = log
  }

  func note(_ device: ClientID, isConnected: Bool) {
    changes.withLock { $0[device] = isConnected }
    changed.ring()
  }

  /// Whether the last heartbeat was stored so recently that the other servers take this one for running; true before
  /// the first one.
  func countsAsRunning(at uptime: Duration = Uptime.now()) -> Bool {
    lastBeat.withLock { last in last.map { uptime - $0.time < Database.serverLifetime } ?? true }
  }

  /// Registers this server; before it accepts requests.
  func join() async throws { _ = try await noteServer() }

  /// Keeps this server registered until it ends.
  struct Heartbeats: Service {
    let membership: Membership
    let hub: EventHub
    let mailboxes: MailboxPublisher?

    func run() async throws { await membership.run(hub, mailboxes) }
  }

  private func run(_ hub: EventHub, _ mailboxes: MailboxPublisher?) async {
    await cancelWhenGracefulShutdown { [self] in
      await withDiscardingTaskGroup { group in
        group.addTask { [self] in await beat(hub) }
        group.addTask { [self] in await storeAndForget(mailboxes) }
      }
    }
    // The database may be out of reach: the others notice the end after ten seconds, too.
    await lastAttempt { [store, server = sharing.server] in
      try? await store.writeBesideRequests { try $0.removeServer(server) }
    }
  }

  /// Writes again and again that this server runs. Waits for nothing else: the others take a server that is late for
  /// ended, and take its leases.
  private func beat(_ hub: EventHub) async {
    while !Task.isCancelled {
      do {
        // After a long outage the others have forgotten this server and its devices.
        if try await noteServer() {
          for device in hub.connectedDevices { note(device, isConnected: hub.isListening(device)) }
        }
      } catch { log.error("heartbeat: \(error)") }
      try? await Task.sleep(for: Self.beatEvery)
    }
  }

  /// Stores what changes while the server runs, and deletes what has expired.
  private func storeAndForget(_ mailboxes: MailboxPublisher?) async {
    var lastForgot: Duration?
    while !Task.isCancelled {
      do {
        try await storeChanges()
        try await store.releaseLeases()
        let (now, uptime) = (clock.now(), Uptime.now())
        // Not by the clock, which can be set back.
        if lastForgot.map({ uptime - $0 >= Self.forgetEvery }) ?? true {
          while !Task.isCancelled, try await store.write({ try $0.forgetShared(now: now) }) {}
          // Devices that requested hints at the broker from another server.
          try await mailboxes?.restore(from: store)
          lastForgot = uptime
        }
      } catch { if !(error is CancellationError) { log.error("membership: \(error)") } }
      await changed.wait(for: Self.beatEvery)
    }
  }

  /// - Returns: whether this server was new to the others.
  private func noteServer() async throws -> Bool {
    report(clockDifference: try await store.measureClock(clock, besideRequests: true))
    let time = clock.now()
    let (isNew, running) = try await store.writeBesideRequests { [server = sharing.server] in
      try $0.noteServer(server, now: time)
    }
    let now = Uptime.now()
    // After an outage, the first server to write takes the others for ended. Their last heartbeat may be older than
    // its own by the time between two.
    let isFirst = lastBeat.withLock { last in
      let outage = Database.serverLifetime - Self.beatEvery
      let isFirst = last.map { !$0.isFirstAfterOutage && now - $0.time > outage } ?? false
      last = Beat(time: now, isFirstAfterOutage: isFirst)
      return isFirst
    }
    if !isFirst { servers.set(running) }
    return isNew
  }

  /// - Parameter difference: how much the database's clock is ahead.
  private func report(clockDifference difference: Duration) {
    let isWrong = abs(difference.milliseconds) > Self.largestClockDifference.milliseconds
    let hasChanged = isClockWrong.withLock { known in
      defer { known = isWrong }
      return known != isWrong
    }
    guard hasChanged else { return }
    let text = "the clocks of this server and of the database differ by \(difference.milliseconds) ms"
    if isWrong { log.warning("\(text): synchronize them (NTP)") } else { log.notice("\(text) only") }
  }

  /// - Returns: when fewer changes than a full batch are left.
  private func storeChanges() async throws {
    while !Task.isCancelled {
      let batch = changes.withLock { changes in
        let batch = Dictionary(uniqueKeysWithValues: changes.prefix(Self.batch).map { ($0.key, $0.value) })
        for device in batch.keys { changes[device] = nil }
        return batch
      }
      guard !batch.isEmpty else { return }
      do {
        try await store.write { [server = sharing.server] in try $0.noteConnections(batch, server: server) }
      } catch {
        changes.withLock { $0.merge(batch) { newer, _ in newer } }
        throw error
      }
      guard batch.count == Self.batch else { return }
    }
  }
}
