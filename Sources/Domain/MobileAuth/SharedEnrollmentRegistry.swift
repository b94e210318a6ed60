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
    try update(where: { $0.id == account }, noting: { _ in entry }, body)
  }

  /// Changes the account of the same profile, also if it was renamed. Retries as above.
  /// - Parameters:
  ///   - makeEntry: returns the entry for the audit chain. Gets the account before the change.
  ///   - body: changes the account as it is stored now.
  /// - Returns: the stored account.
  /// - Throws: `StateStoreError`, also `.notFound` if the account was removed; the errors of `body`.
  package func update(
    profileOf account: AccountRecord, noting makeEntry: (AccountRecord) -> AuditEntry?,
    _ body: (inout AccountRecord) throws -> Void
  ) throws -> AccountRecord {
    let stored = try update(where: { $0.hasProfile(of: account) }, noting: makeEntry) { known in
      var changed = known
      try body(&changed)
      return changed
    }
    guard let stored else { throw StateStoreError.notFound(.account(account.id)) }
    return stored
  }

  private func update(
    where isMeant: (AccountRecord) -> Bool, noting makeEntry: (AccountRecord) -> AuditEntry?,
    _ body: (AccountRecord) throws -> AccountRecord?
  ) throws -> AccountRecord? {
    while true {
      guard let known = try accounts().first(where: isMeant), let changed = try body(known) else { return nil }
      if try change(known, .put(changed, makeEntry(known))) { return changed }
    }
  }
}

extension AccountRecord {
  /// Whether both are of the same profile at the same token server, also if one was renamed.
  package func hasProfile(of other: AccountRecord) -> Bool { server == other.server && profile == other.profile }

  /// Whether all members are equal, including the secrets (compared in constant time).
  package func isSame(as other: AccountRecord) -> Bool {
    id == other.id && server == other.server && profile == other.profile && stage == other.stage
      && displayName == other.displayName
      && enrollment == other.enrollment && pin == other.pin && lock == other.lock && policies == other.policies
      && delivery == other.delivery && allowedOrigins == other.allowedOrigins && standIns == other.standIns
      && SecretBytes.constantTimeEqual(secrets, other.secrets)
  }
}

extension TokenServerRecord {
  /// As `AccountRecord.isSame(as:)`.
  package func isSame(as other: TokenServerRecord) -> Bool {
    id == other.id && kind == other.kind && url == other.url && registration == other.registration
      && SecretBytes.constantTimeEqual(secrets, other.secrets)
  }
}
