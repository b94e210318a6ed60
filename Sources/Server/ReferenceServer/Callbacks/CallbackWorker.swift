// SPDX-License-Identifier: Apache-2.0
import Logging
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerStore

/// Sends callbacks to portals when transactions have ended: at least once, until the portal confirms with 2xx or the
/// result expires. Jobs are stored together with the result, so a restart loses none. A transaction ends once, so it
/// has one job. The number of concurrent deliveries per host is limited, so that a slow portal delays only its own
/// callbacks.
final class CallbackWorker: Service {
  private static let atOnce = 256
  private static let atOnceForHost = 16

  private let store: Store
  private let delivery: CallbackDelivery
  private let clock: ServerClock
  private let jitter: @Sendable () -> Double
  private let wakeUp: AsyncSignal
  private let log: Logger
  private let underWay = Mutex(UnderWay())

  private struct UnderWay {
    var transactions: Set<String> = []
    var hosts: [String: Int] = [:]

    var fullHosts: [String] { hosts.filter { $0.value >= atOnceForHost }.map(\.key) }

    mutating func begin(_ job: CallbackJob) -> Bool {
      guard transactions.count < atOnce, hosts[job.host, default: 0] < atOnceForHost,
        transactions.insert(job.transactionID).inserted
      else { return false }
      hosts[job.host, default: 0] += 1
      return true
    }

    /// - Returns: whether other jobs may have waited for this one to end.
    mutating func end(_ job: CallbackJob) -> Bool {
      let wasFull = transactions.count >= atOnce || hosts[job.host, default: 0] >= atOnceForHost
      transactions.remove(job.transactionID)
      hosts[job.host] = hosts[job.host].flatMap { $0 > 1 ? $0 - 1 : nil }
      return wasFull
    }
  }

  /// - Parameter jitter: random numbers of −1…1, for the backoff.
  init(
    store: Store, delivery: CallbackDelivery, clock: ServerClock, jitter: @escaping @Sendable () -> Double,
    wakeUp: AsyncSignal, log: Logger
  ) {
    self.store = store
    self.delivery = delivery
    self.clock = clock
    self.jitter = jitter
    self.wakeUp = wakeUp
    self.log = log
  }

  func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      await withDiscardingTaskGroup { group in
        while !Task.isCancelled {
          var next: Timestamp?
          do { next = try await startDue(in: &group) } catch {
            log.error("callbacks: \(error)")
            next = clock.now() + .seconds(1)
          }
          await wakeUp.wait(for: next.map { $0 - clock.now() })
        }
      }
    }
  }

  /// - Returns: when the next job is due; nil if unknown.
  private func startDue(in group: inout DiscardingTaskGroup) async throws -> Timestamp? {
    let now = clock.now()
    var hasStarted = true
    // One query may return only jobs of the busiest host; the loop repeats the query without the hosts that are at
    // their limit.
    while hasStarted {
      let full = underWay.withLock { $0.fullHosts }
      let jobs = try await dueJobs(now: now, without: full)
      hasStarted = false
      for job in jobs where underWay.withLock({ $0.begin(job) }) {
        hasStarted = true
        group.addTask { [self] in await perform(job) }
      }
    }
    return try await store.read { try $0.nextCallback(after: now) }
  }

  private func dueJobs(now: Timestamp, without hosts: [String]) async throws -> [CallbackJob] {
    do {
      return try await store.read { try $0.callbacks(dueBy: now, without: hosts, limit: 2 * Self.atOnce) }
    } catch is CorruptRowError {
      let effects = try await store.write { try $0.setAsideUnreadable(now: now) }
      for warning in effects.warnings { log.warning("\(warning)") }
      return try await store.read { try $0.callbacks(dueBy: now, without: hosts, limit: 2 * Self.atOnce) }
    }
  }

  private func perform(_ job: CallbackJob) async {
    // The list may have been read before this job was delivered or postponed by another task.
    guard (try? await store.read { try $0.isWaiting(job) }) ?? true else {
      if underWay.withLock({ $0.end(job) }) { wakeUp.ring() }
      return
    }
    let outcome = await delivery.deliver(job)
    do {
      switch outcome {
      case .delivered: try await store.write { try $0.deleteCallback(job.transactionID) }
      case .refusedForGood(let why):
        try await store.write { try $0.deleteCallback(job.transactionID) }
        log.notice("callback for \(job.transactionID) refused for good: \(why)")
      case .failed(let why):
        let attempts = job.attempts + 1
        let delay = CallbackSchedule.delay(afterFailures: attempts, jitter: jitter())
        let dueAt = clock.now() + delay
        log.notice("callback for \(job.transactionID) failed (\(why)), again in \(delay.milliseconds) ms")
        try await store.write { try $0.postponeCallback(job.transactionID, attempts: attempts, dueAt: dueAt) }
      }
    } catch { log.error("callback for \(job.transactionID): \(error)") }
    let wasFull = underWay.withLock { $0.end(job) }
    // A failed job has a new due time; a job that ended at a limit frees a slot for another.
    if outcome != .delivered || wasFull { wakeUp.ring() }
  }
}
