// SPDX-License-Identifier: Apache-2.0
import GRDB
import Synchronization

/// Group commit. Changes that arrive while a commit is being made durable wait and then share the next one: one fsync
/// for many changes. Each change that shares a transaction runs in its own savepoint, so an error rolls back only that
/// change. A caller gets its result only after the transaction is on disk.
final class WriteQueue: Sendable {
  /// The result of a change before the end of its transaction.
  private struct Outcome {
    let hasFailed: Bool
    /// Called with the error of the transaction, or nil if it is on disk.
    let complete: @Sendable ((any Error)?) -> Void
  }

  /// Runs inside the transaction; called with nil if there is none.
  /// - Parameter isAlone: whether no other change shares the transaction.
  private typealias Job = @Sendable (_ database: GRDB.Database?, _ isAlone: Bool) -> Outcome

  private struct Waiting {
    var jobs: [Job] = []
    /// Whether the jobs must not wait longer for others.
    var areDue = false
    var isCommitting = false
    /// Whether the timer for jobs that are not urgent runs.
    var isTimed = false

    /// - Returns: whether the caller must start a commit.
    mutating func start() -> Bool {
      guard areDue, !isCommitting else { return false }
      isCommitting = true
      return true
    }

    mutating func takeBatch() -> [Job] {
      let batch = Array(jobs.prefix(largestBatch))
      jobs.removeFirst(batch.count)
      if jobs.isEmpty { areDue = false }
      return batch
    }
  }

  /// The maximum number of changes in one transaction; more would delay each of them too long.
  private static let largestBatch = 256
  /// The maximum number of changes that wait; more are refused.
  private static let longestQueue = 4096
  /// The number of waiting changes that are worth a commit, although none is urgent.
  private static let worthwhileBatch = 16

  private let database: any DatabaseWriter
  private let longestWait: Duration
  private let waiting = Mutex(Waiting())

  /// - Parameter longestWait: how long a change that is not urgent waits for the commit of another one.
  init(_ database: any DatabaseWriter, longestWait: Duration = .milliseconds(50)) {
    self.database = database
    self.longestWait = longestWait
  }

  /// The number of changes that wait for the next transaction.
  var count: Int { waiting.withLock { $0.jobs.count } }
  /// As `count`; 0 if they wait only for others to share it.
  var dueCount: Int { waiting.withLock { $0.areDue ? $0.jobs.count : 0 } }

  /// - Parameter isUrgent: whether the next commit begins for this change, as soon as the current one has ended.
  /// - Throws: `StorageUnavailableError` if too many changes wait; the error of `change`, or of the transaction.
  func write<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (GRDB.Database) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let isQueued = enqueue(isUrgent: isUrgent) { database, isAlone in
        let result = Result {
          guard let database else { throw DatabaseError(resultCode: .SQLITE_BUSY) }
          return isAlone ? try change(database) : try database.inPreparedSavepoint(change)
        }
        var hasFailed = false
        if case .failure = result { hasFailed = true }
        return Outcome(hasFailed: hasFailed) { error in
          continuation.resume(with: error.map { .failure($0) } ?? result)
        }
      }
      if !isQueued {
        continuation.resume(throwing: StorageUnavailableError.busy("too many changes wait for the database"))
      }
    }
  }

  /// - Returns: false if the job is refused, because too many wait.
  private func enqueue(isUrgent: Bool, _ job: @escaping Job) -> Bool {
    let start = waiting.withLock { waiting -> (now: Bool, later: Bool)? in
      guard waiting.jobs.count < Self.longestQueue else { return nil }
      waiting.jobs.append(job)
      if isUrgent || waiting.jobs.count >= Self.worthwhileBatch { waiting.areDue = true }
      let mustTime = !waiting.areDue && !waiting.isTimed
      if mustTime { waiting.isTimed = true }
      return (waiting.start(), mustTime)
    }
    guard let start else { return false }
    if start.now { commitNext() }
    if start.later { startTimer() }
    return true
  }

  private func startTimer() {
    Task {
      try? await Task.sleep(for: longestWait)
      let mustStart = waiting.withLock { waiting in
        waiting.isTimed = false
        waiting.areDue = !waiting.jobs.isEmpty
        return waiting.start()
      }
      if mustStart { commitNext() }
    }
  }

  private func commitNext() {
    database.asyncWriteWithoutTransaction { [self] database in
      let jobs = waiting.withLock { $0.takeBatch() }
      var outcomes: [Outcome] = []
      var failure: (any Error)?
      do {
        try database.inTransaction(.immediate) {
          // A full disk ends the shared transaction during a job; the jobs after it must not begin their own
          // transaction.
          outcomes = jobs.map { $0(database.isInsideTransaction ? database : nil, jobs.count == 1) }
          guard database.isInsideTransaction else { throw DatabaseError(resultCode: .SQLITE_FULL) }
          return jobs.count == 1 && outcomes[0].hasFailed ? .rollback : .commit
        }
      } catch { failure = error }
      // If the transaction could not begin, no job ran: each must still be notified.
      if outcomes.isEmpty { outcomes = jobs.map { $0(nil, jobs.count == 1) } }
      outcomes.forEach { $0.complete(failure) }
      let isMore = waiting.withLock { waiting in
        waiting.isCommitting = false
        return waiting.start()
      }
      if isMore { commitNext() }
    }
  }
}

extension GRDB.Database {
  /// As `inSavepoint`, with statements that are prepared once: the connection uses them for most changes.
  fileprivate func inPreparedSavepoint<Value>(_ change: (GRDB.Database) throws -> Value) throws -> Value {
    func run(_ statement: String) throws { try cachedStatement(sql: statement).execute() }
    try run("SAVEPOINT change")
    do {
      let value = try change(self)
      // The database ends the transaction at some errors, which `change` may have caught.
      guard isInsideTransaction else { throw DatabaseError(resultCode: .SQLITE_ABORT) }
      try run("RELEASE change")
      return value
    } catch {
      if isInsideTransaction {
        try run("ROLLBACK TO change")
        try run("RELEASE change")
      }
      throw error
    }
  }
}
