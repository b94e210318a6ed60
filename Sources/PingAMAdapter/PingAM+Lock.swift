public import MobileAuth

extension PingAM {
  /// Why the account cannot be used, its one-time passwords neither; nil if it can, and for one that has lost its keys.
  /// - Parameters:
  ///   - hasPIN: whether the token tells the account's person by one.
  ///   - isTamperedWith: what the token's own checks say.
  public static func lock(
    of record: AccountRecord, hasPIN: Bool, isTamperedWith: () -> Bool
  ) throws(CustodyFault) -> AccountLock? {
    guard let mechanism = try Mechanism(record) else { return nil }
    if let policy = mechanism.facts.lockedBy { return .byHand(policy: policy) }
    return try policies(of: mechanism, record.id)
      .violation(hasPIN: { hasPIN }, isTamperedWith: isTamperedWith).map { .byPolicy($0) }
  }

  /// The account as it is once a person has locked it.
  /// - Parameter policy: one that AM gave the account; whether it holds, or is known here, does not matter.
  /// - Throws: `LockRefusal`, `CustodyFault`.
  public static func lockedByHand(
    _ record: AccountRecord, with policy: String?, hasPIN: Bool, isTamperedWith: () -> Bool
  ) throws -> AccountRecord {
    guard let mechanism = try Mechanism(record) else { throw CustodyFault.unknown("keys of account \(record.id)") }
    let attached = try policies(of: mechanism, record.id).names
    guard let policy, !policy.isEmpty else { throw LockRefusal.policyMissing(attached: attached) }
    guard attached.contains(policy) else { throw LockRefusal.policyNotAttached(policy, attached: attached) }
    if let lock = try lock(of: record, hasPIN: hasPIN, isTamperedWith: isTamperedWith) {
      throw LockRefusal.lockedAlready(lock)
    }
    return try changed(record) { $0.lockedBy = policy }
  }

  /// The account as it is once a person has taken their lock off; a policy that does not hold locks it all the same.
  /// - Throws: `LockRefusal`, `CustodyFault`.
  public static func unlockedByHand(
    _ record: AccountRecord, hasPIN: Bool, isTamperedWith: () -> Bool
  ) throws -> AccountRecord {
    try LockRefusal.demandByHand(try lock(of: record, hasPIN: hasPIN, isTamperedWith: isTamperedWith))
    return try changed(record) { $0.lockedBy = nil }
  }

  /// The policy that does not hold on this device, by name, of policies as they stand in a URI; nil if all hold.
  /// - Throws: `AccountPolicies.Flaw` if they are not JSON as AM writes it.
  public static func violatedPolicy(
    among policies: String, hasPIN: Bool, isTamperedWith: () -> Bool
  ) throws(AccountPolicies.Flaw) -> String? {
    try AccountPolicies(policies).violation(hasPIN: { hasPIN }, isTamperedWith: isTamperedWith)
  }

  /// What whoever enrols is told of policies, as they stand in a URI, that this token does not know: one line each.
  /// - Throws: `AccountPolicies.Flaw` if they are not JSON as AM writes it.
  public static func notes(onPolicies policies: String) throws(AccountPolicies.Flaw) -> [String] {
    try AccountPolicies(policies).unknownNames.map { AccountPolicies.note(onUnknown: $0) }
  }

  private static func policies(of mechanism: Mechanism, _ id: AccountID) throws(CustodyFault) -> AccountPolicies {
    do { return try AccountPolicies(mechanism.facts.policies) } catch {
      throw .damaged("the policies of account \(id)")
    }
  }
}
