// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Synchronization

/// A driver without a reader: it records what it is asked, and says what the test chooses.
package final class ScriptedDriver: AuthenticatorDriver {
  private struct State {
    var isAvailable = true
    var calls: [DriverCall] = []
    var ended = 0
    var continuation: AsyncStream<DriverEvent>.Continuation?
  }

  package let authenticator: String
  package let kind: Authenticator.Kind
  package let input: DriverInput
  private let state = Mutex(State())

  package init(_ authenticator: String, kind: Authenticator.Kind = .custom, hold: Bool = false) {
    self.authenticator = authenticator
    self.kind = kind
    input = .external(hold: hold)
  }

  package var isAvailable: Bool { state.withLock { $0.isAvailable } }
  package func set(available: Bool) { state.withLock { $0.isAvailable = available } }

  /// Every use, also those that ended.
  package var calls: [DriverCall] { state.withLock { $0.calls } }
  /// The number of uses that ended, with an answer or without.
  package var ended: Int { state.withLock { $0.ended } }

  package func events(for call: DriverCall) -> AsyncStream<DriverEvent> {
    AsyncStream { continuation in
      state.withLock { state in
        state.calls.append(call)
        state.continuation = continuation
      }
      continuation.onTermination = { [self] _ in state.withLock { $0.ended += 1 } }
    }
  }

  /// Says something in the present use.
  package func say(_ event: DriverEvent) {
    // Not while the lock is held: the end of the stream takes it.
    state.withLock { $0.continuation }?.yield(event)
  }

  /// Ends the present use without an answer.
  package func end() {
    let continuation = state.withLock { $0.continuation }
    continuation?.finish()
  }
}
