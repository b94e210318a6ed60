// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Whether the user has begun to answer the request on the panel, so that a service that stops lets the answer end
/// first.
///
/// An answer begins with a touch or a digit. It ends with the touch if that was neither a gesture nor one step of
/// several, otherwise when its outcome was shown, or when the request leaves the panel.
package final class StartedAnswer: Sendable {
  private struct State {
    var isTouched = false
    /// Whether a step is done: the answer lasts without a touch.
    var isCommitted = false
    var isStopping = false

    var isUnderway: Bool { isTouched || isCommitted }
  }

  private let state = Mutex(State())
  private let changes = ChangeSignal()

  package init() {}

  /// Whether the service stops: no request is shown any more.
  package var isStopping: Bool { state.withLock { $0.isStopping } }

  package var isUnderway: Bool { state.withLock { $0.isUnderway } }

  package func set(isTouched: Bool) { change { $0.isTouched = isTouched } }

  /// A step of the answer is done.
  package func commit() { change { $0.isCommitted = true } }

  /// The answer has ended, or its request has left the panel.
  package func end() { change { ($0.isTouched, $0.isCommitted) = (false, false) } }

  /// After this, no request is shown.
  /// - Returns: whether an answer is under way.
  package func stop() -> Bool {
    state.withLock {
      $0.isStopping = true
      return $0.isUnderway
    }
  }

  /// Waits until no answer is under way, or until `limit`.
  /// - Returns: whether it has ended.
  /// - Throws: `CancellationError`.
  package func waitForEnd(until limit: MonotonicInstant, in environment: TokenEnvironment) async throws -> Bool {
    while true {
      let generation = changes.generation
      guard state.withLock({ $0.isUnderway }) else { return true }
      guard environment.now < limit else { return false }
      try await changes.wait(beyond: generation, until: limit, in: environment)
    }
  }

  private func change(_ body: (inout sending State) -> Void) {
    let hasEnded = state.withLock { state in
      let former = state.isUnderway
      body(&state)
      return former && !state.isUnderway
    }
    if hasEnded { changes.raise() }
  }
}
