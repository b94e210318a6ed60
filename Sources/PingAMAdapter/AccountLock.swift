public import MobileAuth

/// Why an account cannot be used: nothing is accepted or denied for it, no one-time password is shown, and neither its
/// name nor its mailbox changes. What is brought for it is kept all the same.
public enum AccountLock: Sendable, Equatable, CustomStringConvertible {
  /// A person locked it at this token; an account at AM with one of its policies.
  case byHand(policy: String?)
  /// The policy does not hold on this device.
  case byPolicy(String)

  public var description: String {
    switch self {
    case .byHand(nil): "locked by hand, until `approval-token unlock`"
    case .byHand(let policy?): "locked by hand with the policy \(policy.forPeople), until `approval-token unlock`"
    case .byPolicy(let policy):
      "locked while its policy \(policy.forPeople) does not hold on this device"
        + (AccountPolicies.remedy(for: policy).map { ": \($0)" } ?? "")
    }
  }
}

/// Why a lock was not put on or taken off, or kept something from being done, with the vendor's number for it.
public enum LockRefusal: Error, Equatable, Sendable, CustomStringConvertible {
  case locked(AccountID, AccountLock)
  case policyMissing(attached: [String])
  case policyNotAttached(String, attached: [String])
  case lockedAlready(AccountLock)
  case notLocked
  /// Nobody locked it by hand; it opens by itself once its policy holds.
  case heldByPolicy(String)

  /// As the vendor's SDK for iOS has it.
  public var number: Int {
    switch self {
    case .locked, .heldByPolicy: 6_100_000
    case .policyMissing: 6_100_001
    case .policyNotAttached: 6_100_002
    case .lockedAlready: 6_100_003
    case .notLocked: 6_100_004
    }
  }

  public var description: String { "\(explanation) (\(number))" }

  /// - Throws: unless a person has put this lock on.
  public static func demandByHand(_ lock: AccountLock?) throws(LockRefusal) {
    switch lock {
    case nil: throw .notLocked
    case .byPolicy(let policy)?: throw .heldByPolicy(policy)
    case .byHand?: return
    }
  }

  private var explanation: String {
    switch self {
    case .locked(let account, let lock): "account \(account) is \(lock)"
    case .policyMissing(let attached):
      "an account at PingAM is locked with one of its policies: name it with --policy; \(Self.list(attached))"
    case .policyNotAttached(let policy, let attached):
      "\(policy.forPeople) is no policy of the account; \(Self.list(attached))"
    case .lockedAlready(let lock): "the account is \(lock)"
    case .notLocked: "the account is not locked"
    case .heldByPolicy(let policy): "nobody locked the account by hand; it is \(AccountLock.byPolicy(policy))"
    }
  }

  private static func list(_ attached: [String]) -> String {
    attached.isEmpty ? "AM gave it none" : "it has \(attached.map(\.forPeople).joined(separator: ", "))"
  }
}
