// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Whether the handling loop runs, and its waits for a change of the inbox, numbered, so that a watchdog can find a
/// loop that no longer reacts to changes, or does not come back to its wait. They outlive a handler, so that no number
/// is used twice.
package final class LoopWaits: Sendable {
  package enum Loop: Sendable, Equatable {
    /// The loop waits for a change; the number of the wait.
    case waiting(Int)
    /// The loop works, until `until` at the latest.
    case working(until: MonotonicInstant)
    case absent
  }

  private struct State {
    var count = 0
    var loop = Loop.absent
  }

  private let state = Mutex(State())
  private let environment: TokenEnvironment

  package init(in environment: TokenEnvironment) { self.environment = environment }

  package var loop: Loop { state.withLock { $0.loop } }

  /// How long the loop may work besides what its user or a server takes: much more than a commit on a slow SD card and
  /// the LED's indications of an outcome.
  private static let margin = Duration.seconds(60)

  /// The loop works.
  /// - Parameter end: of what a user or a server may take; nil for now.
  func work(until end: MonotonicInstant? = nil) {
    state.withLock { $0.loop = .working(until: (end ?? environment.now) + Self.margin) }
  }

  func end() { state.withLock { $0.loop = .absent } }

  func during(_ wait: () async throws -> Void) async throws {
    state.withLock {
      $0.count &+= 1
      $0.loop = .waiting($0.count)
    }
    try await wait()
  }
}
