// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import ServerBackends

extension PingAM {
  /// Why the account is locked, which also locks its one-time passwords; nil if it is not locked, or has no keys.
  /// - Parameters:
  ///   - hasPIN: whether the account has a PIN that identifies its user.
  ///   - isTamperedWith: the result of the token's own tamper checks.
  package static func lock(
    of record: AccountRecord, hasPIN: Bool, isTamperedWith: () -> Bool
  ) throws(StateStoreError) -> AccountLock? {
    guard let mechanism = try Mechanism(record) else { return nil }
    if let policy = mechanism.metadata.lockedBy { return .manual(policy: policy) }
    return try policies(of: mechanism, record.id)
      .violation(hasPIN: { hasPIN }, isTamperedWith: isTamperedWith).map { AccountPolicies.lock(by: $0) }
  }

  /// Returns the account locked by its user.
  /// - Parameter policy: the name of a policy that AM attached to the account. The policy need not hold, nor be known
  ///   to this token.
  /// - Throws: `LockError`, `StateStoreError`.
  package static func lockedManually(
    _ record: AccountRecord, with policy: String?, hasPIN: Bool, isTamperedWith: () -> Bool
  ) throws -> AccountRecord {
    guard let mechanism = try Mechanism(record) else { throw StateStoreError.notFound(.keys(of: record.id)) }
    let attached = try policies(of: mechanism, record.id).names
    guard let policy, !policy.isEmpty else { throw LockError.policyMissing(attached: attached) }
    guard attached.contains(policy) else { throw LockError.policyNotAttached(policy, attached: attached) }
    if let lock = try lock(of: record, hasPIN: hasPIN, isTamperedWith: isTamperedWith) {
      throw LockError.lockedAlready(lock)
    }
    return try changed(record) { $0.lockedBy = policy }
  }

  /// Returns the account with the user's lock removed. A policy that does not hold keeps it locked.
  /// - Throws: `LockError`, `StateStoreError`.
  package static func unlockedManually(
    _ record: AccountRecord, hasPIN: Bool, isTamperedWith: () -> Bool
  ) throws -> AccountRecord {
    try LockError.requireManual(try lock(of: record, hasPIN: hasPIN, isTamperedWith: isTamperedWith))
    return try changed(record) { $0.lockedBy = nil }
  }

  /// Returns the name of the first policy that does not hold on this device; nil if all hold.
  /// - Parameter policies: the policies as JSON text, as in a registration URI.
  /// - Throws: `AccountPolicies.ParseError` if they are not the JSON that AM writes.
  package static func violatedPolicy(
    among policies: String, hasPIN: Bool, isTamperedWith: () -> Bool
  ) throws(AccountPolicies.ParseError) -> String? {
    try AccountPolicies(policies).violation(hasPIN: { hasPIN }, isTamperedWith: isTamperedWith)
  }

  /// Returns one message for the user per policy that this token does not know.
  /// - Parameter policies: the policies as JSON text, as in a registration URI.
  /// - Throws: `AccountPolicies.ParseError` if they are not the JSON that AM writes.
  package static func notes(onPolicies policies: String) throws(AccountPolicies.ParseError) -> [String] {
    try AccountPolicies(policies).unknownNames.map { AccountPolicies.note(onUnknown: $0) }
  }

  private static func policies(of mechanism: Mechanism, _ id: AccountID) throws(StateStoreError) -> AccountPolicies {
    do { return try AccountPolicies(mechanism.metadata.policies) } catch {
      throw .corrupt(.policies(of: id))
    }
  }
}
