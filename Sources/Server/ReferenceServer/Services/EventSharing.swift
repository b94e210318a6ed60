// SPDX-License-Identifier: Apache-2.0
import Logging
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerStore

/// Exchanges events with the other servers on the database: a device may be connected to any of them. An event is a
/// hint: if it is lost with a server or the database, the device finds the request when it connects again.
final class EventSharing: Service {
  /// The maximum number of events in one transaction; fewer than `window`.
  private static let batch = 250
  /// The maximum number of events that wait for the database.
  private static let mostWaiting = 10_000
  /// How often to look without a notification.
  private static let lookEvery = Duration.seconds(1)
  /// Numbers of events this far below the highest one can still become visible.
  private static let window: Int64 = 1000

  private let store: Store
  private let sharing: Store.Sharing
  private let clock: ServerClock
  private let log: Logger
  private let waiting = Mutex<[SharedEvent]>([])
  private let posted = AsyncSignal()

  init(store: Store, sharing: Store.Sharing, clock: ServerClock, log: Logger) {
    self.store = store
    self.sharing = sharing
    self.clock = clock
    self.log = log
  }

  /// Posts an event soon.
  func post(_ event: SharedEvent) {
    waiting.withLock { if $0.count < Self.mostWaiting { $0.append(event) } }
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
      let events = Array(waiting.prefix(Self.batch))
      waiting.removeFirst(events.count)
      return events
    }
    guard !events.isEmpty else { return false }
    do {
      try await store.write { [clock, sharing] in try $0.post(events, from: sharing.server, now: clock.now()) }
    } catch {
      waiting.withLock { $0.insert(contentsOf: events.prefix(Self.mostWaiting - $0.count), at: 0) }
      throw error
    }
    await store.notifyServers()
    return true
  }

  /// Reads what others post, until the server ends.
  struct Reader: Service {
    let sharing: EventSharing
    let announcer: ServerAnnouncer

    func run() async throws {
      let (store, log) = (sharing.store, sharing.log)
      let wakeUp = AsyncSignal()
      let listener = try store.listen { wakeUp.ring() }
      await cancelWhenGracefulShutdown {
        var (highest, seen, isFirst) = (Int64(0), Set<Int64>(), true)
        while !Task.isCancelled {
          do {
            let lowest = highest - EventSharing.window
            let found = try await store.read { [server = sharing.sharing.server] in
              try $0.events(after: lowest, notFrom: server)
            }
            for (number, event) in found where seen.insert(number).inserted {
              highest = max(highest, number)
              // A device that connects after the start gets its list of requests.
              if !isFirst, let event { announcer.announce(event) }
            }
            seen = seen.filter { $0 > highest - 2 * EventSharing.window }
            isFirst = false
          } catch { if !(error is CancellationError) { log.error("events of other servers: \(error)") } }
          await wakeUp.wait(for: EventSharing.lookEvery)
        }
      }
      listener?.end()
    }
  }
}
