// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Synchronization

/// Work for several threads, first come, first served. Of the threads that wait, the last one to begin takes the next
/// job: little work uses few threads, and few of their connections are opened.
final class JobQueue<Worker>: Sendable {
  typealias Job = @Sendable (Worker) -> Void

  private struct State {
    /// Nil once taken.
    var jobs: [Job?] = []
    /// The index in `jobs` of the next one.
    var first = 0
    /// The threads that wait.
    var idle: [DispatchSemaphore] = []
    var isEnded = false
  }

  private let limit: Int
  private let state = Mutex(State())

  /// - Parameter limit: the maximum number of jobs that wait.
  init(limit: Int) { self.limit = limit }

  /// The number of jobs that wait.
  var count: Int { state.withLock { $0.jobs.count - $0.first } }

  /// The number of threads that wait.
  var idleThreads: Int { state.withLock { $0.idle.count } }

  /// - Returns: false if the job is refused: too many wait, or the queue has ended.
  func add(_ job: @escaping Job) -> Bool {
    let (isAdded, thread) = state.withLock { state -> (Bool, DispatchSemaphore?) in
      guard !state.isEnded, state.jobs.count - state.first < limit else { return (false, nil) }
      state.jobs.append(job)
      return (true, state.idle.popLast())
    }
    thread?.signal()
    return isAdded
  }

  /// Waits for a job.
  /// - Parameter thread: that of the calling thread alone.
  /// - Returns: nil when the queue has ended and no job is left.
  func next(for thread: DispatchSemaphore) -> Job? {
    while true {
      let (job, isEnded) = state.withLock { state -> (Job?, Bool) in
        guard state.first < state.jobs.count else {
          if !state.isEnded { state.idle.append(thread) }
          return (nil, state.isEnded)
        }
        defer {
          state.jobs[state.first] = nil
          state.first += 1
          if state.first == state.jobs.count || state.first >= 1024 {
            state.jobs.removeFirst(state.first)
            state.first = 0
          }
        }
        return (state.jobs[state.first], false)
      }
      if job != nil || isEnded { return job }
      // Another thread may have taken the job by then.
      thread.wait()
    }
  }

  /// Lets the threads end when all jobs are done.
  func end() {
    let threads = state.withLock { state in
      state.isEnded = true
      defer { state.idle = [] }
      return state.idle
    }
    for thread in threads { thread.signal() }
  }
}
