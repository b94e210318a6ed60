// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// A backend whose accounts can be locked at this token.
package protocol AccountLocks: ServerBackend {
  /// Whether the user locks an account with one of the policies that the server attached to it. Otherwise an account is
  /// locked without a policy.
  static var locksWithPolicy: Bool { get }
}

/// What decides whether a policy holds.
package struct PolicyConditions {
  /// Whether the account has a PIN that identifies its user.
  let hasPIN: () -> Bool
  /// Whether the token's own checks found a change by another program. Can be slow.
  let isTamperedWith: () -> Bool

  package init(hasPIN: @autoclosure @escaping () -> Bool, isTamperedWith: @escaping () -> Bool) {
    self.hasPIN = hasPIN
    self.isTamperedWith = isTamperedWith
  }
}

extension AccountRecord {
  /// Why the account is locked, which also locks its one-time passwords; nil if it is not locked, or has no keys.
  /// - Throws: `.corrupt` if the policies are not the JSON that a server writes.
  package func currentLock(_ conditions: PolicyConditions) throws(StateStoreError) -> AccountLock? {
    if let lock { return .manual(policy: lock.policy) }
    return try parsedPolicies().violation(hasPIN: conditions.hasPIN, isTamperedWith: conditions.isTamperedWith)
      .map { AccountPolicies.lock(by: $0) }
  }

  /// Returns the account locked by its user.
  /// - Parameters:
  ///   - policy: a policy that the server attached to the account. It need not hold, nor be known to this token.
  ///   - isRequired: `AccountLocks.locksWithPolicy`.
  /// - Throws: `LockError`, `StateStoreError`, `BackendError`.
  package func locked(with policy: String?, isRequired: Bool, _ conditions: PolicyConditions) throws -> AccountRecord {
    guard stage == .active else { throw StateStoreError.notFound(.keys(of: id)) }
    if isRequired {
      let attached = try parsedPolicies().names
      guard let policy, !policy.isEmpty else { throw LockError.policyMissing(attached: attached) }
      guard attached.contains(policy) else { throw LockError.policyNotAttached(policy, attached: attached) }
    } else if policy != nil {
      throw BackendError(.usage, "account \(id) is not locked with a policy: leave out --policy")
    }
    if let lock = try currentLock(conditions) { throw LockError.lockedAlready(lock) }
    var account = self
    account.lock = UserLock(policy: policy)
    return account
  }

  /// Returns the account without the user's lock. A policy that does not hold keeps it locked.
  /// - Throws: `LockError`, `StateStoreError`.
  package func unlocked(_ conditions: PolicyConditions) throws -> AccountRecord {
    try LockError.requireManual(try currentLock(conditions))
    var account = self
    account.lock = nil
    return account
  }

  package func parsedPolicies() throws(StateStoreError) -> AccountPolicies {
    do { return try AccountPolicies(policies) } catch { throw .corrupt(.policies(of: id)) }
  }
}
