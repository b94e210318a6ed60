// SPDX-License-Identifier: Apache-2.0
import Logging
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerStore

/// One timer for open requests and for profiles without a chosen PIN: it sleeps until the next expiry. Readers check
/// expiry themselves; this timer notifies devices and portals and deletes old results.
final class ExpiryTimer: ExpirySchedule, Service {
  /// A delay after the expiry time, so that an answer that arrived in time can still be verified.
  private static let graceMs: Int64 = 250
  private static let forgetEveryMs: Int64 = 600_000

  private let store: Store
  private let announcer: any Announcer
  private let clock: ServerClock
  private let retentionMs: Int64
  private let wakeUp = AsyncSignal()
  private let plannedMs = Mutex(Int64.max)

  init(store: Store, announcer: any Announcer, clock: ServerClock, retentionHours: Int) {
    self.store = store
    self.announcer = announcer
    self.clock = clock
    retentionMs = Int64(retentionHours) * 3_600_000
  }

  /// Schedules a wake-up for a new expiry time.
  func expect(atMs: Int64) {
    let isSooner = plannedMs.withLock { planned in
      guard atMs < planned else { return false }
      planned = atMs
      return true
    }
    if isSooner { wakeUp.ring() }
  }

  func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      var lastForgotMs: Int64 = 0
      while !Task.isCancelled {
        var shortestMs: Int64 = 10
        do {
          let nowMs = clock.nowMs()
          try await expire(nowMs: nowMs)
          if nowMs - lastForgotMs >= Self.forgetEveryMs {
            lastForgotMs = nowMs
            let oldestMs = nowMs - retentionMs
            try await store.write { try $0.forget(endedBeforeMs: oldestMs, nowMs: nowMs) }
          }
          try await planNext()
        } catch {
          announcer.log.error("expiry: \(error)")
          shortestMs = 1000
        }
        let plannedMs = plannedMs.withLock { $0 }
        let untilNextMs = plannedMs == .max ? Self.forgetEveryMs : plannedMs + Self.graceMs - clock.nowMs()
        // At least a moment, so that a failing database does not make this spin.
        await wakeUp.wait(milliseconds: min(max(untilNextMs, shortestMs), Self.forgetEveryMs))
      }
    }
  }

  private func expire(nowMs: Int64) async throws {
    let dueMs = nowMs - Self.graceMs
    let next = try await store.read { try $0.nextDueMs() }
    guard let next, next <= dueMs else { return }
    announcer.announce(
      try await store.write { database in
        var effects = try database.expireTransactions(nowMs: dueMs)
        effects.add(try database.expireProfiles(nowMs: dueMs))
        return effects
      })
  }

  private func planNext() async throws {
    // Cleared first, so that an expiry time reported during the query is not lost.
    plannedMs.withLock { $0 = .max }
    if let next = try await store.read({ try $0.nextDueMs() }) {
      plannedMs.withLock { $0 = min($0, next) }
    }
  }
}
