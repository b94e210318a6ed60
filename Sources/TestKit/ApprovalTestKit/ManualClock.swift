// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Synchronization

/// A clock that moves only when the test advances it. Sleeping tasks wake in the order of their deadlines.
package final class ManualClock: TokenClock {
  private struct Sleeper {
    let moment: MonotonicInstant
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var now = MonotonicInstant(uptime: .zero)
    var wallClockMilliseconds: Int64
    var sleepers: [Int: Sleeper] = [:]
    var canceled: Set<Int> = []
    var nextSleeper = 0
    var watchers: [(count: Int, wait: BoundedWait)] = []
  }

  private let state: Mutex<State>

  /// - Parameter wallClockMilliseconds: the board's wall clock at the beginning, in ms since 1970.
  package init(wallClockMilliseconds: Int64 = 1_790_000_000_000) {
    state = Mutex(State(wallClockMilliseconds: wallClockMilliseconds))
  }

  package var now: MonotonicInstant { state.withLock { $0.now } }
  package var wallClockMilliseconds: Int64 { state.withLock { $0.wallClockMilliseconds } }

  /// The number of sleeping tasks.
  package var sleeping: Int { state.withLock { $0.sleepers.count } }

  /// The time until the first of the sleeping tasks wakes; nil if no task sleeps.
  package var untilNextWakes: Duration? {
    state.withLock { state in state.sleepers.values.map(\.moment).min().map { $0 - state.now } }
  }

  package func sleep(until moment: MonotonicInstant) async throws {
    let number = state.withLock { state in
      state.nextSleeper += 1
      return state.nextSleeper
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        enum Next { case sleep([BoundedWait]), wake, cancel }
        let next: Next = state.withLock { state in
          if state.canceled.remove(number) != nil || Task.isCancelled { return .cancel }
          if moment <= state.now { return .wake }
          state.sleepers[number] = Sleeper(moment: moment, continuation: continuation)
          let satisfied = state.watchers.filter { $0.count <= state.sleepers.count }
          state.watchers.removeAll { $0.count <= state.sleepers.count }
          return .sleep(satisfied.map(\.wait))
        }
        switch next {
        case .sleep(let watchers): for watcher in watchers { watcher.resume() }
        case .wake: continuation.resume()
        case .cancel: continuation.resume(throwing: CancellationError())
        }
      }
    } onCancel: {
      let sleeper = state.withLock { state in
        let sleeper = state.sleepers.removeValue(forKey: number)
        if sleeper == nil { state.canceled.insert(number) }
        return sleeper
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }

  /// Advances both clocks and wakes every task whose deadline has passed, earliest first.
  package func advance(by duration: Duration) {
    let due: [Sleeper] = state.withLock { state in
      state.now = state.now + duration
      let (seconds, attoseconds) = duration.components
      state.wallClockMilliseconds += seconds * 1000 + attoseconds / 1_000_000_000_000_000
      let due = state.sleepers.filter { $0.value.moment <= state.now }.sorted { $0.value.moment < $1.value.moment }
      for (number, _) in due { state.sleepers[number] = nil }
      return due.map(\.value)
    }
    for sleeper in due { sleeper.continuation.resume() }
  }

  /// Whether a task sleeps.
  package var hasSleepers: Bool { state.withLock { !$0.sleepers.isEmpty } }

  /// Waits, without advancing the clock, until at least `count` tasks sleep. The test may then advance the clock.
  package func untilAsleep(_ count: Int = 1) async {
    await BoundedWait.wait(for: { "\(count) tasks asleep" }) { wait in
      let already = state.withLock { state in
        if state.sleepers.count >= count { return true }
        state.watchers.append((count, wait))
        return false
      }
      if already { wait.resume() }
    }
  }
}
