// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A condition with a change counter that tasks can wait for. A change between reading the state and waiting is not
/// missed, because the waiter passes the generation that it has seen.
package final class ChangeSignal: Sendable {
  private struct State {
    var generation = 0
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
    /// The waiters that have no result yet, or have not taken it.
    var open: Set<Int> = []
    /// Results of waiters that had not begun to wait.
    var early: [Int: Result<Void, any Error>] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// The number of changes.
  package var generation: Int { state.withLock { $0.generation } }

  package func raise() {
    let waiters = state.withLock { state in
      state.generation += 1
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Returns when the generation is greater than `seen`. Throws `CancellationError` when the task is canceled.
  package func wait(beyond seen: Int) async throws { try await wait(beyond: seen, as: newWaiter()) }

  /// Like `wait(beyond:)`, but returns at `limit` at the latest, if there is one.
  package func wait(beyond seen: Int, until limit: MonotonicInstant?, in environment: TokenEnvironment) async throws {
    guard let limit else { return try await wait(beyond: seen) }
    let number = newWaiter()
    // Not waited for: its end costs the waiter no time.
    let alarm = Task {
      try await environment.sleep(until: limit)
      end(number, .success(()))
    }
    defer { alarm.cancel() }
    try await wait(beyond: seen, as: number)
  }

  private func newWaiter() -> Int {
    state.withLock { state in
      state.nextWaiter += 1
      state.open.insert(state.nextWaiter)
      return state.nextWaiter
    }
  }

  private func wait(beyond seen: Int, as number: Int) async throws {
    defer {
      state.withLock { state in
        state.open.remove(number)
        state.early[number] = nil
      }
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let immediate: Result<Void, any Error>? = state.withLock { state in
          if let early = state.early.removeValue(forKey: number) { return early }
          if state.generation > seen { return .success(()) }
          state.waiters[number] = continuation
          return nil
        }
        if let immediate { continuation.resume(with: immediate) }
      }
    } onCancel: {
      end(number, .failure(CancellationError()))
    }
  }

  /// Ends the wait of one waiter.
  private func end(_ number: Int, _ result: Result<Void, any Error>) {
    let waiter = state.withLock { state in
      let waiter = state.waiters.removeValue(forKey: number)
      if waiter == nil, state.open.contains(number) { state.early[number] = result }
      return waiter
    }
    waiter?.resume(with: result)
  }
}
