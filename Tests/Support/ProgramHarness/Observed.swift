// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A value that other tasks change and a test waits for, without polling or sleeping.
package final class Observed<Value: Sendable>: Sendable {
  private struct State {
    var value: Value
    var generation = 0
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  package init(_ value: Value) { state = Mutex(State(value: value)) }

  package var value: Value { state.withLock { $0.value } }

  package func change(_ body: (inout Value) -> Void) {
    let waiters = state.withLock { state in
      body(&state.value)
      state.generation += 1
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// The first non-nil result of `find`; nil after `limit`.
  package func first<Found: Sendable>(within limit: Duration, _ find: @Sendable (Value) -> Found?) async -> Found? {
    let deadline = ContinuousClock.now + limit
    while true {
      let (found, seen) = state.withLock { (find($0.value), $0.generation) }
      if let found { return found }
      let left = deadline - .now
      guard left > .zero else { return nil }
      await nextChange(after: seen, atMost: left)
    }
  }

  private func nextChange(after seen: Int, atMost left: Duration) async {
    let alarm = Task {
      try await Task.sleep(for: left)
      change { _ in }
    }
    await withCheckedContinuation { continuation in
      let isLate = state.withLock { state in
        guard state.generation == seen else { return true }
        state.waiters.append(continuation)
        return false
      }
      if isLate { continuation.resume() }
    }
    alarm.cancel()
  }
}

/// An expected event that did not occur, with details.
package struct OutputTimeoutError: Error, CustomStringConvertible {
  package let description: String
  package init(description: String) { self.description = description }
}

/// The time limit of waits. It is long because machines may be busy: only a failing test waits this long.
package let patience = Duration.seconds(60)
