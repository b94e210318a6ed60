// SPDX-License-Identifier: Apache-2.0
import Logging
import ReferenceProtocol
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerStore

/// Exchanges events with the other servers on the database: a device may be connected to any of them. An event is a
/// hint: if it is lost with a server or the database, the device finds the request when it connects again.
final class EventSharing: Service {
  /// The maximum number of events in one transaction; fewer than `window`, and as many as one notification can name.
  private static let batch = 100
  /// The maximum number of events that wait for the database.
  static let mostWaiting = 10_000
  /// How often to look without a notification.
  private static let lookEvery = Duration.seconds(1)
  /// Numbers of events this far below the highest one can still become visible.
  private static let window: Int64 = 1000

  private struct Waiting {
    var events: [SharedEvent] = []
    /// Whether events were dropped since none waited.
    var isOverfull = false
  }

  private let store: Store
  private let sharing: Store.Sharing
  /// Nil without a broker.
  private let mailboxes: MailboxPublisher?
  private let clock: ServerClock
  private let log: Logger
  private let waiting = Mutex(Waiting())
  private let posted = AsyncSignal()

  /// Nil if no other server can use the database.
  init?(store: Store, mailboxes: MailboxPublisher?, clock: ServerClock, log: Logger) {
    guard let sharing = store.sharedBy else { return nil }
    self.store = store
    self.sharing = sharing
    self.mailboxes = mailboxes
    self.clock = clock
    self.log = log
  }

  /// Posts an event soon; drops it if too many wait.
  func post(_ event: SharedEvent) {
    let isFirstDropped = waiting.withLock { waiting in
      guard waiting.events.count >= Self.mostWaiting else {
        waiting.events.append(event)
        return false
      }
      defer { waiting.isOverfull = true }
      return !waiting.isOverfull
    }
    if isFirstDropped { log.warning("\(Self.mostWaiting) events wait for other servers: more are dropped") }
    posted.ring()
  }

  /// Posts until the server ends.
  func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      while !Task.isCancelled {
        do { if try await !postNext() { await posted.wait(for: nil) } } catch {
          log.error("events for other servers: \(error)")
          try? await Task.sleep(for: .seconds(1))
        }
      }
    }
    // This service ends after the one of requests: what those have left is posted, if the database answers.
    await lastAttempt { [self] in while (try? await postNext()) == true {} }
  }

  /// - Returns: false if no event waits.
  private func postNext() async throws -> Bool {
    let events = waiting.withLock { waiting in
      let events = Array(waiting.events.prefix(Self.batch))
      waiting.events.removeFirst(events.count)
      if events.isEmpty { waiting.isOverfull = false }
      return events
    }
    guard !events.isEmpty else { return false }
    let unmailed = mailboxes == nil ? [] : Set(events.filter { !$0.isMailed }.map(\.notice.clientID))
    let mailed: Set<ClientID>
    do {
      mailed = try await store.write { [clock, sharing] records in
        // Another server may have received the device's request for hints at the broker.
        let mailed = unmailed.isEmpty ? [] : try records.devices(withTransport: .mqtt, among: unmailed)
        var events = events
        for index in events.indices where mailed.contains(events[index].notice.clientID) {
          events[index].isMailed = true
        }
        try records.post(events, from: sharing.server, now: clock.now())
        return mailed
      }
    } catch {
      waiting.withLock { $0.events.insert(contentsOf: events.prefix(Self.mostWaiting - $0.events.count), at: 0) }
      throw error
    }
    for event in events where !event.isMailed && mailed.contains(event.notice.clientID) {
      mailboxes?.set(event.notice.clientID, isWanted: true)
      _ = mailboxes?.publish(event.notice.event.kind, to: event.notice.clientID)
    }
    await store.notifyServers(of: Set(events.map(\.notice.clientID)))
    return true
  }

  /// Publishes the hint of an event at the broker, unless another server has taken it over.
  private func mail(_ event: SharedEvent, _ number: Int64) async throws {
    guard let mailboxes, !event.isMailed, mailboxes.isWanted(by: event.notice.clientID),
      try await store.write({ try $0.takeHint(ofEvent: number) })
    else { return }
    _ = mailboxes.publish(event.notice.event.kind, to: event.notice.clientID)
  }
}

extension EventSharing {
  /// Reads what others post, until the server ends: at once the events for devices of this server, and every second
  /// all, in case that a notification did not arrive.
  struct Reader: Service {
    private let sharing: EventSharing
    private let announcer: ServerAnnouncer
    private let known: Progress

    /// Before the server accepts requests: what was posted until then is not announced, because each device gets its
    /// list of requests when it connects.
    init(of sharing: EventSharing, announcer: ServerAnnouncer) async throws {
      self.sharing = sharing
      self.announcer = announcer
      known = try await sharing.store.read { [server = sharing.sharing.server] records in
        let highest = try records.newestEvent()
        let seen = try records.events(after: highest - EventSharing.window, notFrom: server) { _, _ in false }
        return Progress(highest: highest, seen: Set(seen.map(\.number)))
      }
    }

    /// What notifications have named since the last query.
    private struct Notified {
      var devices: Set<ClientID> = []
      var isForAny = false
    }

    func run() async throws {
      let wakeUp = AsyncSignal()
      let notified = Mutex(Notified())
      let listener = try sharing.store.listen(
        changed: { [log = sharing.log] error in
          if let error {
            log.warning("events of other servers are found within a second, not at once: \(error)")
          } else {
            log.notice("events of other servers are found at once again")
          }
        }
      ) { [announcer] devices in
        let concerned = devices?.filter { announcer.concerns($0) }
        guard concerned?.isEmpty != true else { return }
        notified.withLock { notified in
          notified.devices.formUnion(concerned ?? [])
          notified.isForAny = notified.isForAny || concerned == nil
        }
        wakeUp.ring()
      }
      await cancelWhenGracefulShutdown {
        var progress = known
        var lastLook: ContinuousClock.Instant?
        while !Task.isCancelled {
          let news = notified.withLock { notified in
            defer { notified = Notified() }
            return notified
          }
          let now = ContinuousClock.now
          let looks = news.isForAny || lastLook.map { now - $0 >= EventSharing.lookEvery } ?? true
          if looks { lastLook = now }
          do { try await read(looks ? nil : news.devices, &progress) } catch {
            if !(error is CancellationError) { sharing.log.error("events of other servers: \(error)") }
          }
          await wakeUp.wait(for: (lastLook ?? now) + EventSharing.lookEvery - .now)
        }
      }
      listener?.end()
    }

    private struct Progress {
      /// The highest number of all events that were looked for.
      var highest: Int64
      var seen: Set<Int64>
      /// Of the seen ones, those whose hint could not be taken over because the database failed.
      var unmailed: Set<Int64> = []
    }

    /// - Parameter devices: nil for all devices.
    private func read(_ devices: Set<ClientID>?, _ progress: inout Progress) async throws {
      let seen = progress.seen.subtracting(progress.unmailed)
      let found = try await sharing.store.read {
        [lowest = progress.highest - EventSharing.window, server = sharing.sharing.server, announcer] in
        try $0.events(after: lowest, notFrom: server, for: devices) { number, device in
          !seen.contains(number) && announcer.concerns(device)
        }
      }
      var failure: (any Error)?
      for (number, event) in found where !progress.seen.contains(number) || progress.unmailed.contains(number) {
        let isNew = progress.seen.insert(number).inserted
        guard let event else { continue }
        if isNew { announcer.announceHere(event.notice) }
        do {
          try await sharing.mail(event, number)
          progress.unmailed.remove(number)
        } catch {
          progress.unmailed.insert(number)
          failure = failure ?? error
        }
      }
      if let failure { throw failure }
      guard devices == nil else { return }
      progress.highest = max(progress.highest, found.last?.number ?? 0)
      progress.seen = progress.seen.filter { [highest = progress.highest] in $0 > highest - 2 * EventSharing.window }
    }
  }
}
