// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// Threads for tests that wait for programs, clients and timers by blocking. Swift has as many threads for all tasks as
/// processors: blocked, they would keep the other tests from running.
final class BlockingThreads: TaskExecutor {
  static let shared = BlockingThreads(count: 16)

  private let condition = NSCondition()
  private nonisolated(unsafe) var jobs: [UnownedJob] = []

  private init(count: Int) {
    for _ in 0..<count { Thread.detachNewThread { [self] in while true { next().runSynchronously(on: executor) } } }
  }

  private var executor: UnownedTaskExecutor { asUnownedTaskExecutor() }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    condition.withLock {
      jobs.append(job)
      condition.signal()
    }
  }

  private func next() -> UnownedJob {
    condition.withLock {
      while jobs.isEmpty { condition.wait() }
      return jobs.removeFirst()
    }
  }
}

/// Runs the tests of a suite on `BlockingThreads`.
struct MayBlock: SuiteTrait, TestScoping {
  func provideScope(
    for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(BlockingThreads.shared) { try await body() }
  }
}

extension Trait where Self == MayBlock { static var mayBlock: MayBlock { MayBlock() } }
