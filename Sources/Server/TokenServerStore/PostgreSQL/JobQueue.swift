// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Synchronization

/// Work for several threads, first come, first served.
final class JobQueue<Worker>: Sendable {
  typealias Job = @Sendable (Worker) -> Void

  private struct State {
    /// Nil once taken.
    var jobs: [Job?] = []
    /// The index in `jobs` of the next one.
    var first = 0
    var isEnded = false
  }

  private let limit: Int
  private let state = Mutex(State())
  private let waiting = DispatchSemaphore(value: 0)

  /// - Parameter limit: the maximum number of jobs that wait.
  init(limit: Int) { self.limit = limit }

  /// The number of jobs that wait.
  var count: Int { state.withLock { $0.jobs.count - $0.first } }

  /// - Returns: false if the job is refused: too many wait, or the queue has ended.
  func add(_ job: @escaping Job) -> Bool {
    let isAdded = state.withLock { state in
      guard !state.isEnded, state.jobs.count - state.first < limit else { return false }
      state.jobs.append(job)
      return true
    }
    if isAdded { waiting.signal() }
    return isAdded
  }

  /// Waits for a job.
  /// - Returns: nil when the queue has ended and no job is left.
  func next() -> Job? {
    waiting.wait()
    return state.withLock { state in
      guard state.first < state.jobs.count else {
        // The end is for all threads.
        waiting.signal()
        return nil
      }
      defer {
        state.jobs[state.first] = nil
        state.first += 1
        if state.first == state.jobs.count || state.first >= 1024 {
          state.jobs.removeFirst(state.first)
          state.first = 0
        }
      }
      return state.jobs[state.first]
    }
  }

  /// Lets the threads end when all jobs are done.
  func end() {
    state.withLock { $0.isEnded = true }
    waiting.signal()
  }
}
