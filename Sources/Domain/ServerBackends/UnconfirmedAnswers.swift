// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The answers that were sent, and whose servers may have recorded them without a confirmation that arrived. In memory
/// only, by their idempotency keys.
package final class UnconfirmedAnswers: Sendable {
  private let keys = Mutex<Set<String>>([])

  package init() {}

  package func insert(_ idempotencyKey: String) { keys.withLock { _ = $0.insert(idempotencyKey) } }

  package func contains(_ idempotencyKey: String) -> Bool { keys.withLock { $0.contains(idempotencyKey) } }

  /// The answer's outcome is known.
  /// - Returns: whether the answer was unconfirmed.
  @discardableResult package func remove(_ idempotencyKey: String) -> Bool {
    keys.withLock { $0.remove(idempotencyKey) != nil }
  }
}
