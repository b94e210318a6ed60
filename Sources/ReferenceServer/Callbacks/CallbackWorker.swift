import AsyncHTTPClient
import Logging
import ServiceLifecycle
import Synchronization

/// Tells portals that transactions have ended: at least once, until the portal says it has understood or the result
/// is too old to ask for. Jobs were stored with the result, so a restart loses none. A transaction ends once, so it
/// has one job, and a slow portal holds up nobody else.
final class CallbackWorker: Service {
  private static let atOnce = 256

  private let store: Store
  private let delivery: CallbackDelivery
  private let clock: ServerClock
  private let wakeUp: WakeUp
  private let log: Logger
  private let underWay = Mutex<Set<String>>([])

  init(store: Store, delivery: CallbackDelivery, clock: ServerClock, wakeUp: WakeUp, log: Logger) {
    self.store = store
    self.delivery = delivery
    self.clock = clock
    self.wakeUp = wakeUp
    self.log = log
  }

  func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      await withDiscardingTaskGroup { group in
        while !Task.isCancelled {
          var nextMs: Int64?
          do { nextMs = try await startDue(in: &group) } catch {
            log.error("callbacks: \(error)")
            nextMs = clock.nowMs() + 1000
          }
          await wakeUp.wait(milliseconds: nextMs.map { $0 - clock.nowMs() })
        }
      }
    }
    try await delivery.client.shutdown()
  }

  /// - Returns: when the next job is due, if it is known.
  private func startDue(in group: inout DiscardingTaskGroup) async throws -> Int64? {
    let jobs = try await store.read { try $0.callbacks(limit: 2 * Self.atOnce) }
    let nowMs = clock.nowMs()
    for job in jobs {
      let mayStart = underWay.withLock { underWay in
        job.dueAtMs <= nowMs && underWay.count < Self.atOnce && underWay.insert(job.transactionID).inserted
      }
      if mayStart { group.addTask { [self] in await carryOut(job) } }
    }
    return jobs.first { $0.dueAtMs > nowMs }?.dueAtMs
  }

  private func carryOut(_ job: CallbackJob) async {
    let outcome = await delivery.deliver(job)
    do {
      switch outcome {
      case .delivered, .refusedForGood:
        try await store.write { try $0.deleteCallback(job.transactionID) }
        if outcome == .refusedForGood { log.notice("callback for \(job.transactionID) refused for good") }
      case .failed(let why):
        let attempts = job.attempts + 1
        let delayMs = CallbackSchedule.delayMs(afterFailures: attempts, jitter: .random(in: -1...1))
        let dueAtMs = clock.nowMs() + delayMs
        log.notice("callback for \(job.transactionID) failed (\(why)), again in \(delayMs) ms")
        try await store.write { try $0.postponeCallback(job.transactionID, attempts: attempts, dueAtMs: dueAtMs) }
      }
    } catch { log.error("callback for \(job.transactionID): \(error)") }
    let wasFull = underWay.withLock { underWay in
      underWay.remove(job.transactionID)
      return underWay.count == Self.atOnce - 1
    }
    // A failed one has a new due time, and a full house has room again.
    if outcome != .delivered || wasFull { wakeUp.ring() }
  }
}
