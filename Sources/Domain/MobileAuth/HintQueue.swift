// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The hints that were not handled yet, at most one of each kind: a server or a broker can send any number of them.
final class HintQueue: Sendable {
  private struct State {
    var waiting: [Hint] = []
    /// Why no more hints come; nil while they do.
    var end: (any Error)?
  }

  private let state = Mutex(State())
  private let changes = ChangeSignal()

  /// Replaces a waiting hint of the same kind.
  func put(_ hint: Hint) {
    state.withLock { state in
      state.waiting.removeAll { $0.kind == hint.kind }
      state.waiting.append(hint)
    }
    changes.raise()
  }

  /// Ends the queue. The waiting hints are still taken.
  func end(by error: any Error) {
    state.withLock { $0.end = error }
    changes.raise()
  }

  /// Takes the oldest hint, as soon as there is one.
  /// - Throws: `CancellationError`; after the last hint, the error that ended the queue.
  func next() async throws -> Hint {
    while true {
      let seen = changes.generation
      let hint = try state.withLock { (state: inout State) throws -> Hint? in
        if state.waiting.isEmpty, let error = state.end { throw error }
        return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
      }
      if let hint { return hint }
      try await changes.wait(beyond: seen)
    }
  }
}

extension Hint {
  fileprivate var kind: Int {
    switch self {
    case .connected: 0
    case .disconnected: 1
    case .pendingChanged: 2
    case .revoked: 3
    }
  }
}

/// Limits how often something happens: at once up to `burst` times, then `burst` times in each second.
package struct Pacer {
  private let burst: Int
  private var former: [MonotonicInstant] = []

  /// - Parameter burst: at least 1.
  package init(burst: Int = 5) { self.burst = burst }

  /// When the next one may happen.
  package func earliest(_ now: MonotonicInstant) -> MonotonicInstant {
    former.count < burst ? now : max(now, former[0] + .seconds(1))
  }

  package mutating func note(_ now: MonotonicInstant) {
    if former.count == burst { former.removeFirst() }
    former.append(now)
  }
}
