// SPDX-License-Identifier: Apache-2.0
import Dispatch
import SQLite
import Synchronization
import Threads

/// Group commit, on a thread of its own. Changes that arrive while a commit is being made durable wait and then share
/// the next one: one fsync for many changes. Each change that shares a transaction runs in its own savepoint, so an
/// error rolls back only that change. A caller gets its result only after the transaction is on disk.
final class WriteQueue: Sendable {
  /// The result of a change before the end of its transaction.
  private struct Outcome {
    let error: (any Error)?
    /// Called with the error of the transaction, or nil if it is on disk.
    let complete: @Sendable ((any Error)?) -> Void
  }

  /// Runs inside the transaction; called with nil if there is none.
  /// - Parameter isAlone: whether no other change shares the transaction.
  private typealias Job = @Sendable (_ session: SQLiteSession?, _ isAlone: Bool) -> Outcome

  private struct Waiting {
    enum ThreadState {
      /// Commits, and then looks for more.
      case committing
      /// Looks again after `longestWait`, or before.
      case pausing
      case sleeping
    }

    var jobs: [Job] = []
    /// Whether the jobs must not wait longer for others.
    var areDue = false
    /// When they must not; nil if none waits for others.
    var dueAt: DispatchTime?
    var isEnded = false
    var thread = ThreadState.committing

    var mustBegin: Bool { areDue || isEnded || dueAt.map { $0 <= .now() } == true }

    /// - Returns: nothing if none are due.
    mutating func takeBatch() -> [Job] {
      guard mustBegin else { return [] }
      thread = .committing
      let batch = Array(jobs.prefix(largestBatch))
      jobs.removeFirst(batch.count)
      areDue = !jobs.isEmpty
      dueAt = nil
      return batch
    }
  }

  /// What the thread shares with its owner.
  private final class Shared: Sendable {
    let waiting = Mutex(Waiting())
    let wakeUp = DispatchSemaphore(value: 0)
  }

  /// The maximum number of changes in one transaction; more would delay each of them too long.
  private static let largestBatch = 256
  /// The maximum number of changes that wait; more are refused.
  private static let longestQueue = 4096
  /// The number of waiting changes that are worth a commit, although none is urgent.
  private static let worthwhileBatch = 16

  private let shared = Shared()
  private let longestWait: DispatchTimeInterval
  private let thread: LoopThread

  /// - Parameters:
  ///   - session: for this queue alone. It is closed with it.
  ///   - longestWait: how long a change that is not urgent waits for the commit of another one.
  init(_ session: SQLiteSession, longestWait: DispatchTimeInterval = .milliseconds(50)) {
    self.longestWait = longestWait
    thread = LoopThread(named: "sqlite") { [shared] in
      while var jobs = Self.nextBatch(of: shared, longestWait) { Self.commit(&jobs, in: session) }
    }
  }

  deinit { close() }

  /// The number of changes that wait for the next transaction.
  var count: Int { shared.waiting.withLock { $0.jobs.count } }
  /// As `count`; 0 if they wait only for others to share it.
  var dueCount: Int { shared.waiting.withLock { $0.mustBegin ? $0.jobs.count : 0 } }

  /// Commits what waits, and closes the connection. Later changes are refused.
  func close() {
    let isFirst = shared.waiting.withLock { waiting in
      defer { waiting.isEnded = true }
      return !waiting.isEnded
    }
    guard isFirst else { return }
    shared.wakeUp.signal()
    thread.join()
  }

  /// - Parameter isUrgent: whether the next commit begins for this change, as soon as the current one has ended.
  /// - Throws: `StorageUnavailableError` if too many changes wait; the error of `change`, or of the transaction.
  func write<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (SQLiteTransaction) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let refusal = enqueue(isUrgent: isUrgent) { session, isAlone in
        let result = Result {
          guard let session else { throw Self.transactionEnded }
          let transaction = SQLiteTransaction(session)
          return isAlone ? try change(transaction) : try session.connection.savepoint { try change(transaction) }
        }
        var error: (any Error)?
        if case .failure(let failure) = result { error = failure }
        return Outcome(error: error) { error in
          continuation.resume(with: error.map { .failure($0) } ?? result)
        }
      }
      if let refusal { continuation.resume(throwing: refusal) }
    }
  }

  private static let transactionEnded = StorageUnavailableError(
    reason: "the transaction has ended", description: "SQLite has ended the transaction, as it does at a full disk")
  private static let closed = StorageUnavailableError(reason: "closed", description: "the database is closed")
  private static let crowded = StorageUnavailableError.busy("too many changes wait for the database")

  /// - Returns: the error if the job is refused.
  private func enqueue(isUrgent: Bool, _ job: @escaping Job) -> StorageUnavailableError? {
    let (mustWake, refusal) = shared.waiting.withLock { waiting -> (Bool, StorageUnavailableError?) in
      if waiting.isEnded { return (false, Self.closed) }
      guard waiting.jobs.count < Self.longestQueue else { return (false, Self.crowded) }
      waiting.jobs.append(job)
      if waiting.areDue { return (false, nil) }
      waiting.areDue = isUrgent || waiting.jobs.count >= Self.worthwhileBatch
      if waiting.areDue { return (waiting.thread != .committing, nil) }
      if waiting.dueAt == nil { waiting.dueAt = .now() + longestWait }
      guard waiting.thread == .sleeping else { return (false, nil) }
      waiting.thread = .pausing
      return (true, nil)
    }
    if mustWake { shared.wakeUp.signal() }
    return refusal
  }

  /// Waits until changes are due.
  /// - Returns: nil when the queue has ended and no change is left.
  private static func nextBatch(of shared: Shared, _ longestWait: DispatchTimeInterval) -> [Job]? {
    // Soon after a change there are often others: one that is not urgent need not wake the thread.
    var isFirstLook = true
    while true {
      let (batch, end, isEnded) = shared.waiting.withLock { waiting -> ([Job], DispatchTime?, Bool) in
        let batch = waiting.takeBatch()
        guard batch.isEmpty, !waiting.isEnded else { return (batch, nil, waiting.isEnded) }
        let end = waiting.dueAt ?? (isFirstLook ? .now() + longestWait : nil)
        waiting.thread = end == nil ? .sleeping : .pausing
        return ([], end, false)
      }
      if !batch.isEmpty { return batch }
      if isEnded { return nil }
      if let end { _ = shared.wakeUp.wait(timeout: end) } else { shared.wakeUp.wait() }
      isFirstLook = false
    }
  }

  private struct RollbackError: Error {}

  /// - Parameter jobs: empty afterwards. A job can hold the last reference to the queue, whose end waits for this
  ///   thread; so they are released before their callers go on.
  private static func commit(_ jobs: inout [Job], in session: SQLiteSession) {
    let isAlone = jobs.count == 1
    var outcomes: [Outcome] = []
    var failure: (any Error)?
    do {
      try session.connection.transaction { connection in
        // A full disk ends the shared transaction during a job; the jobs after it must not begin their own
        // transaction.
        for job in jobs { outcomes.append(job(connection.isInTransaction ? session : nil, isAlone)) }
        guard connection.isInTransaction else {
          let cause = outcomes.lazy.compactMap { $0.error as? SQLiteError }.first { $0.isOfTheDisk }
          throw cause ?? transactionEnded as any Error
        }
        if isAlone, outcomes.contains(where: { $0.error != nil }) { throw RollbackError() }
      }
    } catch is RollbackError {} catch { failure = error }
    // If the transaction could not begin, no job ran: each must still be notified.
    if outcomes.isEmpty { outcomes = jobs.map { $0(nil, isAlone) } }
    jobs = []
    for outcome in outcomes { outcome.complete(failure) }
  }
}
