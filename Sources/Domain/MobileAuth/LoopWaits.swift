// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Whether the handling loop runs, and its waits for a change of the inbox, numbered, so that a watchdog can find a
/// loop that no longer reacts to changes. They outlive a handler, so that no number is used twice.
package final class LoopWaits: Sendable {
  package enum Loop: Sendable, Equatable {
    /// The loop waits for a change; the number of the wait.
    case waiting(Int)
    /// The loop handles a request until `until` at the latest, or something else (nil).
    case handling(until: MonotonicInstant?)
    case absent
  }

  private struct State {
    var count = 0
    var loop = Loop.absent
  }

  private let state = Mutex(State())

  package init() {}

  package var loop: Loop { state.withLock { $0.loop } }

  /// How long after its end a request may be handled: its answer may be under way.
  private static let margin = Duration.seconds(60)

  func begin() { handle() }

  /// - Parameter end: of the validity of the request that is handled; nil for something else.
  func handle(requestUntil end: MonotonicInstant? = nil) {
    state.withLock { $0.loop = .handling(until: end.map { $0 + Self.margin }) }
  }
  func end() { state.withLock { $0.loop = .absent } }

  func during(_ wait: () async throws -> Void) async throws {
    state.withLock {
      $0.count &+= 1
      $0.loop = .waiting($0.count)
    }
    defer { handle() }
    try await wait()
  }
}
