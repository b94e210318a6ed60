// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A condition with a change counter that tasks can wait for. A change between reading the state and waiting is not
/// missed, because the waiter passes the generation that it has seen.
package final class ChangeSignal: Sendable {
  private struct State {
    var generation = 0
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
    var canceledEarly: Set<Int> = []
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
  package func wait(beyond seen: Int) async throws {
    let number = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let immediate: Result<Void, any Error>? = state.withLock { state in
          if state.canceledEarly.remove(number) != nil { return .failure(CancellationError()) }
          if state.generation > seen { return .success(()) }
          state.waiters[number] = continuation
          return nil
        }
        if let immediate { continuation.resume(with: immediate) }
      }
      state.withLock { _ = $0.canceledEarly.remove(number) }
    } onCancel: {
      let waiter = state.withLock { state in
        let waiter = state.waiters.removeValue(forKey: number)
        if waiter == nil { state.canceledEarly.insert(number) }
        return waiter
      }
      waiter?.resume(throwing: CancellationError())
    }
  }

  /// Like `wait(beyond:)`, but returns at `limit` at the latest, if there is one.
  package func wait(beyond seen: Int, until limit: MonotonicInstant?, in environment: TokenEnvironment) async throws {
    guard let limit else { return try await wait(beyond: seen) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await self.wait(beyond: seen) }
      group.addTask { try await environment.sleep(until: limit) }
      try await group.next()
    }
  }
}
