// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Whether the user is touching the panel now. Shared with the task that watches the inbox.
final class Touch: Sendable {
  private let end: Mutex<MonotonicInstant>
  private let held = Atomic(false)
  private let answer: StartedAnswer

  init(pinnedUntil end: MonotonicInstant, answer: StartedAnswer) {
    self.end = Mutex(end)
    self.answer = answer
  }

  /// Until this time nothing must replace the request, because the user has to enter something more, or again.
  var pinEnd: MonotonicInstant { end.withLock(\.self) }

  func keep(until end: MonotonicInstant) { self.end.withLock { $0 = end } }

  var isHeld: Bool {
    get { held.load(ordering: .acquiring) }
    set {
      held.store(newValue, ordering: .releasing)
      answer.set(isTouched: newValue)
    }
  }

  /// Whether nothing must replace the request.
  func keepsRequest(at now: MonotonicInstant) -> Bool { now < pinEnd || isHeld }
}
