// SPDX-License-Identifier: Apache-2.0
import GRDB
import Synchronization

/// Group commit. Changes that arrive while a commit is being made durable wait and then share the next one: one fsync
/// for many changes. Each change runs in its own savepoint, so an error rolls back only that change. A caller gets its
/// result only after the shared transaction is on disk.
final class WriteQueue: Sendable {
  /// Runs inside the shared transaction; called with nil if there is none. Its return value is called with the result
  /// of that transaction.
  private typealias Job = @Sendable (GRDB.Database?) -> @Sendable ((any Error)?) -> Void

  private struct Waiting {
    var jobs: [Job] = []
    var isCommitting = false
  }

  /// The maximum number of changes in one transaction; more would delay each of them too long.
  private static let largestBatch = 256

  private let database: any DatabaseWriter
  private let waiting = Mutex(Waiting())

  init(_ database: any DatabaseWriter) { self.database = database }

  /// The number of changes that wait for the next transaction.
  var count: Int { waiting.withLock { $0.jobs.count } }

  func write<Value: Sendable>(_ change: @escaping @Sendable (GRDB.Database) throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      enqueue { database in
        let result = Result {
          guard let database else { throw DatabaseError(resultCode: .SQLITE_BUSY) }
          var value: Value?
          try database.inSavepoint {
            value = try change(database)
            return .commit
          }
          return value!
        }
        return { fate in continuation.resume(with: fate.map { .failure($0) } ?? result) }
      }
    }
  }

  private func enqueue(_ job: @escaping Job) {
    let mustStart = waiting.withLock { waiting in
      waiting.jobs.append(job)
      defer { waiting.isCommitting = true }
      return !waiting.isCommitting
    }
    if mustStart { commitNext() }
  }

  private func commitNext() {
    database.asyncWriteWithoutTransaction { [self] database in
      let jobs = waiting.withLock { waiting in
        let batch = Array(waiting.jobs.prefix(Self.largestBatch))
        waiting.jobs.removeFirst(batch.count)
        return batch
      }
      var completions: [@Sendable ((any Error)?) -> Void] = []
      var fate: (any Error)?
      do {
        try database.inTransaction(.immediate) {
          // A full disk ends the shared transaction during a job; the jobs after it must not begin their own
          // transaction.
          completions = jobs.map { $0(database.isInsideTransaction ? database : nil) }
          guard database.isInsideTransaction else { throw DatabaseError(resultCode: .SQLITE_FULL) }
          return .commit
        }
      } catch { fate = error }
      // If the transaction could not begin, no job ran: each must still be notified.
      if completions.isEmpty { completions = jobs.map { $0(nil) } }
      completions.forEach { $0(fate) }
      let isMore = waiting.withLock { waiting in
        waiting.isCommitting = !waiting.jobs.isEmpty
        return waiting.isCommitting
      }
      if isMore { commitNext() }
    }
  }
}
