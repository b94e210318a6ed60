// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// A backend whose accounts can be locked at this token.
///
/// In all functions, `hasPIN` says whether the account has a PIN that identifies its user.
package protocol AccountLocks: ServerBackend {
  /// Why the account is locked, which also locks its one-time passwords; nil if it is not locked, or has no keys.
  func lock(of account: AccountRecord, hasPIN: Bool) throws -> AccountLock?

  /// Returns the account locked by its user.
  /// - Parameter policy: a policy that the server attached to the account; nil where accounts have none.
  /// - Throws: `LockError`, `StateStoreError`, `BackendError`.
  func locked(_ account: AccountRecord, with policy: String?, hasPIN: Bool) throws -> AccountRecord

  /// Returns the account with the user's lock removed. A policy that does not hold keeps it locked.
  /// - Throws: `LockError`, `StateStoreError`.
  func unlocked(_ account: AccountRecord, hasPIN: Bool) throws -> AccountRecord
}
