// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Synchronization

/// Where a call of a test double waits until the test opens it. A cancellation does not end the wait: the call stands
/// for a response that is on its way, or for a key derivation.
package final class Gate: Sendable {
  private let opening = ChangeSignal()
  private let canceled = Atomic(false)

  init() {}

  package func open() { opening.raise() }

  /// Whether a call was canceled while it waits here.
  package var isCanceled: Bool { canceled.load(ordering: .acquiring) }

  func pass() async {
    let passing = Task { [opening] in
      _ = try? await Task { try await opening.wait(beyond: 0) }.finished("an open gate")
    }
    await withTaskCancellationHandler {
      await passing.value
    } onCancel: {
      canceled.store(true, ordering: .releasing)
    }
  }
}
