// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The waits of the handling loop for a change of the inbox, numbered, so that a watchdog can find a loop that no
/// longer reacts to changes.
package final class LoopWaits: Sendable {
  private struct State {
    var count = 0
    var isWaiting = false
  }

  private let state = Mutex(State())

  /// The number of the wait that lasts at present; nil while the loop handles a request, or does not run. A request may
  /// keep the loop for as long as it is valid.
  package var current: Int? { state.withLock { $0.isWaiting ? $0.count : nil } }

  func during(_ wait: () async throws -> Void) async throws {
    state.withLock {
      $0.count &+= 1
      $0.isWaiting = true
    }
    defer { state.withLock { $0.isWaiting = false } }
    try await wait()
  }
}
