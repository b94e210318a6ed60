// SPDX-License-Identifier: Apache-2.0
import MobileAuth

/// Repeats an operation that has failed because another connection kept the vault locked for longer than the vault
/// waits: on a busy machine its process may not run meanwhile. For at most a minute.
package func untilUnlocked<Result>(_ operation: () throws -> Result) throws -> Result {
  let deadline = ContinuousClock.now + .seconds(60)
  while ContinuousClock.now < deadline {
    do { return try operation() } catch StateStoreError.io(_, let reason)
      where reason.contains("database is locked") || reason.contains(", not wal")
    {}
  }
  return try operation()
}
