// SPDX-License-Identifier: Apache-2.0
import Secrets

/// A compare-and-swap change of an account.
package enum AccountChange: Sendable {
  /// Replaces the account, under the same name, and appends the entry to the audit chain in one transaction.
  case put(AccountRecord, AuditEntry?)
  /// Like `StateStore.dropKeys`.
  case dropKeys(AuditEntry)
  /// Like `StateStore.wipe`.
  case wipe(AuditEntry)
}

/// A store of enrollments with concurrent writers: a command can abandon an enrollment while a message from the server
/// confirms it.
package protocol SharedEnrollmentRegistry: EnrollmentRegistry {
  /// Applies a change if the account is unchanged. Durable when it returns.
  /// - Parameter known: the account before the change.
  /// - Returns: false, without a change, if the account has changed or been removed since.
  func change(_ known: AccountRecord, _ change: AccountChange) throws(StateStoreError) -> Bool
}

extension SharedEnrollmentRegistry {
  /// Replaces the account by the result of `body`. Retries, with a new read, after a concurrent change.
  /// - Parameters:
  ///   - entry: appended to the audit chain in the same transaction.
  ///   - body: returns the new account; nil leaves the account as it is.
  /// - Returns: the stored account; nil if there is none or `body` returned nil.
  /// - Throws: `StateStoreError`, and the errors of `body`.
  @discardableResult
  package func update(
    _ account: AccountID, noting entry: AuditEntry? = nil, _ body: (AccountRecord) throws -> AccountRecord?
  ) throws -> AccountRecord? {
    while true {
      guard let known = try accounts().first(where: { $0.id == account }), let changed = try body(known) else {
        return nil
      }
      if try change(known, .put(changed, entry)) { return changed }
    }
  }
}

extension AccountRecord {
  /// Whether all members are equal, including the secrets (compared in constant time).
  package func isSame(as other: AccountRecord) -> Bool {
    id == other.id && server == other.server && profile == other.profile && stage == other.stage
      && displayName == other.displayName
      && enrollment == other.enrollment && pin == other.pin && lock == other.lock && policies == other.policies
      && delivery == other.delivery && allowedOrigins == other.allowedOrigins && standIns == other.standIns
      && SecretBytes.constantTimeEqual(secrets, other.secrets)
  }
}
