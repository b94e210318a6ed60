// SPDX-License-Identifier: Apache-2.0
import Logging
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerStore

/// Sends callbacks to portals when transactions have ended: at least once, until the portal confirms with 2xx or the
/// result expires. Jobs are stored together with the result, so a restart loses none. A transaction ends once, so it
/// has one job. The number of concurrent deliveries per host and per portal is limited, so that a slow portal delays
/// only its own callbacks, whatever names it uses.
final class CallbackWorker: Service {
  private static let atOnce = 256
  private static let atOnceForHost = 16
  /// How long one of several servers has for a callback, before another one delivers it.
  private static let claim = Duration.seconds(60)
  /// How often one of several servers looks for callbacks that another one did not deliver.
  private static let lookEvery = Duration.seconds(5)

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
    var portals: [String: Int] = [:]

    var fullHosts: [String] { hosts.filter { $0.value >= atOnceForHost }.map(\.key) }
    /// A portal may have as many deliveries under way as remain free for others. So each of n busy portals gets an
    /// equal part, and one of n + 1 parts stays free for the next.
    var fullPortals: [String] { portals.filter { $0.value >= free }.map(\.key) }
    private var free: Int { atOnce - transactions.count }

    mutating func begin(_ job: CallbackJob) -> Bool {
      guard portals[job.portal, default: 0] < free, hosts[job.host, default: 0] < atOnceForHost,
        transactions.insert(job.transactionID).inserted
      else { return false }
      hosts[job.host, default: 0] += 1
      portals[job.portal, default: 0] += 1
      return true
    }

    /// - Returns: whether other jobs may have waited for this one to end.
    mutating func end(_ job: CallbackJob) -> Bool {
      let wasFull = hosts[job.host, default: 0] >= atOnceForHost || portals.values.contains { $0 >= free }
      transactions.remove(job.transactionID)
      hosts[job.host] = hosts[job.host].flatMap { $0 > 1 ? $0 - 1 : nil }
      portals[job.portal] = portals[job.portal].flatMap { $0 > 1 ? $0 - 1 : nil }
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
            if !(error is CancellationError) { log.error("callbacks: \(error)") }
            next = clock.now() + .seconds(1)
          }
          let untilNext = next.map { $0 - clock.now() }
          await wakeUp.wait(
            for: store.sharedBy == nil ? untilNext : min(untilNext ?? Self.lookEvery, Self.lookEvery))
        }
      }
    }
  }

  /// - Returns: when the next job is due; nil if unknown.
  private func startDue(in group: inout DiscardingTaskGroup) async throws -> Timestamp? {
    let now = clock.now()
    var hasStarted = true
    // One query may return only jobs of the busiest host or portal; the loop repeats the query without those that are
    // at their limit.
    while hasStarted {
      let (hosts, portals) = underWay.withLock { ($0.fullHosts, $0.fullPortals) }
      let jobs = try await dueJobs(now: now, without: hosts, portals)
      let begun = jobs.filter { job in underWay.withLock { $0.begin(job) } }
      hasStarted = !begun.isEmpty
      for job in begun { group.addTask { [self] in await perform(job) } }
      if store.sharedBy != nil, begun.count < jobs.count {
        let others = jobs.filter { !begun.contains($0) }
        try await store.write { try $0.returnCallbacks(others, claimedUntil: now + Self.claim) }
      }
    }
    return try await store.read { try $0.nextCallback(after: now) }
  }

  private func dueJobs(now: Timestamp, without hosts: [String], _ portals: [String]) async throws -> [CallbackJob] {
    func read() async throws -> [CallbackJob] {
      guard store.sharedBy != nil else {
        return try await store.read {
          try $0.callbacks(dueBy: now, without: hosts, portals: portals, limit: 2 * Self.atOnce)
        }
      }
      let free = underWay.withLock { Self.atOnce - $0.transactions.count }
      return try await store.write {
        try $0.claimCallbacks(
          dueBy: now, until: now + Self.claim, without: hosts, portals: portals,
          limit: min(free, Self.atOnceForHost))
      }
    }
    do { return try await read() } catch is CorruptRowError {
      let effects = try await store.write { try $0.setAsideUnreadable(now: now) }
      for warning in effects.warnings { log.warning("\(warning)") }
      return try await read()
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
