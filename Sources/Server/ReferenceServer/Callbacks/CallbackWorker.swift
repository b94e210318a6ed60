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
  /// The pause after which a callback is repeated whose outcome could not be stored.
  private static let afterStorageFailure = Duration.seconds(5)
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
    /// Those that ended since the last `beginList`.
    private var ended: Set<String> = []
    var hosts: [String: Int] = [:]
    var portals: [String: Int] = [:]

    var fullHosts: [String] { hosts.filter { $0.value >= atOnceForHost }.map(\.key) }
    /// A portal may have as many deliveries under way as remain free for others. So each of n busy portals gets an
    /// equal part, and one of n + 1 parts stays free for the next.
    var fullPortals: [String] { portals.filter { $0.value >= free }.map(\.key) }
    private var free: Int { atOnce - transactions.count }

    /// To be called before due jobs are read: a job that ends meanwhile may still be in their list.
    mutating func beginList() { ended = [] }

    mutating func begin(_ job: CallbackJob) -> Bool {
      guard portals[job.portal, default: 0] < free, hosts[job.host, default: 0] < atOnceForHost,
        !ended.contains(job.transactionID), transactions.insert(job.transactionID).inserted
      else { return false }
      hosts[job.host, default: 0] += 1
      portals[job.portal, default: 0] += 1
      return true
    }

    /// - Returns: whether other jobs may have waited for this one to end.
    mutating func end(_ job: CallbackJob) -> Bool {
      let wasFull = hosts[job.host, default: 0] >= atOnceForHost || portals.values.contains { $0 >= free }
      transactions.remove(job.transactionID)
      ended.insert(job.transactionID)
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
    while true {
      let due = try await dueJobs(now: clock.now())
      let begun = due.jobs.filter { job in underWay.withLock { $0.begin(job) } }
      for job in begun { group.addTask { [self] in await perform(job) } }
      if store.sharedBy != nil, begun.count < due.jobs.count {
        for job in due.jobs where !begun.contains(job) {
          try await store.writeStatement { try $0.returnCallback(job) }
        }
      }
      // A full list may have only jobs of the busiest host or portal; the next one is without those at their limit.
      guard due.isFull, !begun.isEmpty || due.unreadable > 0 else { return due.next }
    }
  }

  private struct Due {
    let jobs: [CallbackJob]
    /// The number of those that could not be read, and are claimed or set aside.
    var unreadable = 0
    /// Whether there may be more.
    let isFull: Bool
    /// When the next job is due that is not due yet.
    let next: Timestamp?
  }

  private func dueJobs(now: Timestamp) async throws -> Due {
    let (hosts, portals, free) = underWay.withLock { underWay in
      underWay.beginList()
      return (underWay.fullHosts, underWay.fullPortals, Self.atOnce - underWay.transactions.count)
    }
    let limit = store.sharedBy == nil ? 2 * Self.atOnce : min(free, Self.atOnceForHost)
    func read() async throws -> Due {
      guard store.sharedBy != nil else {
        return try await store.read {
          let jobs = try $0.callbacks(dueBy: now, without: hosts, portals: portals, limit: limit)
          return Due(jobs: jobs, isFull: jobs.count >= limit, next: try $0.nextCallback(after: now))
        }
      }
      let (jobs, unreadable) = try await store.writeStatement { [clock] in
        // The time of the statement: it may have waited for the database.
        try $0.claimCallbacks(
          dueBy: now, until: clock.now() + Self.claim, without: hosts, portals: portals, limit: limit)
      }
      // What is claimed is delivered, even if the database fails now.
      if unreadable > 0 {
        do { try await setAsideUnreadable(now: now) } catch { log.error("unreadable callbacks: \(error)") }
      }
      let next = try? await store.read { try $0.nextCallback(after: now) }
      return Due(jobs: jobs, unreadable: unreadable, isFull: jobs.count + unreadable >= limit, next: next)
    }
    do { return try await read() } catch is CorruptRowError {
      try await setAsideUnreadable(now: now)
      return try await read()
    }
  }

  private func setAsideUnreadable(now: Timestamp) async throws {
    let effects = try await store.write { try $0.setAsideUnreadable(now: now) }
    for warning in effects.warnings { log.warning("\(warning)") }
  }

  private func perform(_ job: CallbackJob) async {
    let outcome = await delivery.deliver(job)
    var isStored = true
    do {
      // Not urgent: if the change is lost with the process, the callback is sent again.
      switch outcome {
      case .delivered: try await store.writeStatement(isUrgent: false) { try $0.deleteCallback(job.transactionID) }
      case .refusedForGood(let why):
        try await store.writeStatement(isUrgent: false) { try $0.deleteCallback(job.transactionID) }
        log.notice("callback \(job.logName) refused for good: \(why)")
      case .failed(let why):
        let delay = CallbackSchedule.delay(afterFailures: job.attempts + 1, jitter: jitter())
        let dueAt = clock.now() + delay
        log.notice("callback \(job.logName) failed (\(why)), again in \(delay.milliseconds) ms")
        try await store.writeStatement(isUrgent: false) {
          try $0.postponeCallback(job, until: dueAt)
        }
      }
    } catch {
      isStored = false
      let pause = store.sharedBy == nil ? Self.afterStorageFailure : Self.claim
      log.error("callback \(job.logName), again in at most \(pause): \(error)")
      // It is still due: without a pause it would be sent as often as the portal answers.
      try? await Task.sleep(for: Self.afterStorageFailure)
    }
    let wasFull = underWay.withLock { $0.end(job) }
    // A failed job has a new due time, and one whose result is not stored is still due; a job that ended at a limit
    // frees a slot for another.
    if outcome != .delivered || !isStored || wasFull { wakeUp.ring() }
  }
}

extension CallbackJob {
  /// Its transaction, portal and host, for the log.
  fileprivate var logName: String { "for \(transactionID) of \(portal) to \(host)" }
}
