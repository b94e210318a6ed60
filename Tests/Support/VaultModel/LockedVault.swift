// SPDX-License-Identifier: Apache-2.0
import MobileAuth

/// Repeats an operation that has failed because another connection kept the vault locked for longer than the vault
/// waits: on a busy machine its process may not run meanwhile. At most two times.
package func untilUnlocked<Result>(_ operation: () throws -> Result) throws -> Result {
  for _ in 1...2 {
    do { return try operation() } catch StateStoreError.io(_, let reason)
      where reason.contains("database is locked") || reason.contains(", not wal")
    {}
  }
  return try operation()
}
