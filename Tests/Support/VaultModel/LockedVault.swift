// SPDX-License-Identifier: Apache-2.0
import MobileAuth

/// Repeats an operation that has failed because another connection kept the vault locked for longer than the vault
/// waits: on a busy machine its process may not run meanwhile. At most for a minute.
package func untilUnlocked<Result>(_ operation: () throws -> Result) throws -> Result {
  let deadline = ContinuousClock.now + .seconds(60)
  while true {
    do { return try operation() } catch StateStoreError.io(let call, let reason)
      where reason.contains("database is locked") || call == "journal_mode"
    {
      guard ContinuousClock.now < deadline else { throw StateStoreError.io(call: call, reason: reason) }
    }
  }
}
