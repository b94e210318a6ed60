// SPDX-License-Identifier: Apache-2.0
import Logging
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerStore

/// One timer for open requests and for profiles without a chosen PIN: it sleeps until the next expiry. Readers check
/// expiry themselves; this timer notifies devices and portals and deletes old results.
final class ExpiryTimer: ExpirySchedule, Service {
  /// A delay after the expiry time, in which the verification of an answer that arrived in time can end. An answer
  /// whose verification takes longer, for example because of a slow script, is refused as expired: its device has given
  /// the request up meanwhile.
  private static let grace = Duration.milliseconds(250)
  private static let forgetEvery = Duration.seconds(600)
  /// How often one of several servers looks for what another one started and did not end.
  private static let lookEvery = Duration.seconds(5)

  private let store: Store
  private let announcer: any Announcer
  private let clock: ServerClock
  private let retention: Duration
  private let wakeUp = AsyncSignal()
  /// Nil if nothing expires.
  private let planned = Mutex<Timestamp?>(nil)

  init(store: Store, announcer: any Announcer, clock: ServerClock, retentionHours: Int) {
    self.store = store
    self.announcer = announcer
    self.clock = clock
    retention = .seconds(retentionHours * 3600)
  }

  func expect(at time: Timestamp) {
    let isSooner = planned.withLock { planned in
      if let planned, planned <= time { return false }
      planned = time
      return true
    }
    if isSooner { wakeUp.ring() }
  }

  func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      var deletion = Deletion()
      var isMore = false
      while !Task.isCancelled {
        var shortest = Duration.milliseconds(10)
        var hasFailed = false
        do {
          let now = clock.now()
          if try await !expire(now: now) { shortest = .milliseconds(250) }
          let isDue = deletion.isDue(every: Self.forgetEvery, now: now, uptime: Uptime.now())
          if deletion.isPostponed { isMore = false }
          if isMore || isDue {
            let oldest = now - retention
            isMore = try await store.write { try $0.forget(endedBefore: oldest, now: now) }
          }
          try await planNext()
        } catch {
          if !(error is CancellationError) { announcer.log.error("expiry: \(error)") }
          (shortest, hasFailed) = (.seconds(1), true)
        }
        let untilNext =
          isMore || hasFailed
          ? shortest : planned.withLock { $0 }.map { $0 + Self.grace - clock.now() } ?? Self.forgetEvery
        // At least a moment, so that neither a failing database nor another server makes this spin.
        await wakeUp.wait(
          for: min(max(untilNext, shortest), store.sharedBy == nil ? Self.forgetEvery : Self.lookEvery))
      }
    }
  }

  /// - Returns: false if another server works on all that is due.
  private func expire(now: Timestamp) async throws -> Bool {
    let due = now - Self.grace
    let next = try await store.read { try $0.nextDue() }
    guard let next, next <= due else { return true }
    let effects = try await store.write { database in
      var effects = try database.expireTransactions(now: due)
      effects.add(try database.expireProfiles(now: due))
      return effects
    }
    announcer.announce(effects)
    return effects != Effects()
  }

  private func planNext() async throws {
    // Cleared first, so that an expiry time reported during the query is not lost.
    planned.withLock { $0 = nil }
    guard let next = try await store.read({ try $0.nextDue() }) else { return }
    planned.withLock { $0 = $0.map { min($0, next) } ?? next }
  }
}

/// When to delete what has ended long ago. After the clock was set forward by more than an hour, that is postponed: if
/// it is set back soon, nothing is lost that was not old.
struct Deletion {
  /// A difference that neither a slow timer nor a correction of the clock explains.
  private static let jump = Duration.seconds(3600)

  private var looked: (now: Timestamp, uptime: Duration)?
  private var deleted: Duration?
  /// Whether the clock was set forward since the call before.
  private(set) var isPostponed = false

  init() {}

  /// - Parameters:
  ///   - now: the wall clock.
  ///   - uptime: of a clock that is not set.
  mutating func isDue(every interval: Duration, now: Timestamp, uptime: Duration) -> Bool {
    isPostponed = looked.map { (now - $0.now) - (uptime - $0.uptime) > Self.jump } ?? false
    looked = (now, uptime)
    if isPostponed { deleted = uptime }
    guard deleted.map({ uptime - $0 >= interval }) ?? true else { return false }
    deleted = uptime
    return true
  }
}
