// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import MobileAuth

/// The reason why an account is locked. While locked, no request can be approved or denied, no one-time password is
/// shown, and the account's name and mailbox cannot be changed. Messages that arrive are still stored.
package enum AccountLock: Sendable, Equatable, CustomStringConvertible {
  /// The user locked the account at this token. Some are locked with one of their policies.
  case manual(policy: String?)
  /// The named policy does not hold on this device; with the action that makes it hold again, if there is one.
  case byPolicy(String, remedy: String?)

  package var isManual: Bool { if case .manual = self { true } else { false } }

  package var description: String {
    switch self {
    case .manual(nil): "locked by the user, until `approval-token unlock`"
    case .manual(let policy?): "locked by the user with the policy \(policy.sanitized), until `approval-token unlock`"
    case .byPolicy(let policy, let remedy):
      "locked while its policy \(policy.sanitized) does not hold on this device" + (remedy.map { ": \($0)" } ?? "")
    }
  }
}

/// Errors of locking and unlocking an account, and of an operation that a lock prevents. Each has the error
/// number of the ForgeRock SDK.
package enum LockError: ReportedError, Equatable {
  case locked(AccountID, AccountLock)
  case policyMissing(attached: [String])
  case policyNotAttached(String, attached: [String])
  case lockedAlready(AccountLock)
  case notLocked
  /// The user did not lock the account: a policy did, and the lock opens when the policy holds.
  case heldByPolicy(AccountLock)

  /// The error number that the ForgeRock SDK for iOS (now Ping SDK) uses for this case.
  package var number: Int? {
    switch self {
    case .locked, .heldByPolicy: 6_100_000
    case .policyMissing: 6_100_001
    case .policyNotAttached: 6_100_002
    case .lockedAlready: 6_100_003
    case .notLocked: 6_100_004
    }
  }

  package var category: ErrorCategory {
    switch self {
    case .policyMissing, .policyNotAttached: .usage
    case .locked, .lockedAlready, .notLocked, .heldByPolicy: .refused
    }
  }

  package var description: String { number.map { "\(explanation) (\($0))" } ?? explanation }

  /// Checks that the user has locked the account.
  /// - Throws: `.notLocked` without a lock, `.heldByPolicy` if a policy is the cause.
  package static func requireManual(_ lock: AccountLock?) throws(LockError) {
    switch lock {
    case nil: throw .notLocked
    case let lock? where !lock.isManual: throw .heldByPolicy(lock)
    case _?: return
    }
  }

  package var explanation: String {
    switch self {
    case .locked(let account, let lock): "account \(account) is \(lock)"
    case .policyMissing(let attached):
      "this account is locked with one of its policies: name it with --policy; \(Self.list(attached))"
    case .policyNotAttached(let policy, let attached):
      "\(policy.sanitized) is not a policy of this account; \(Self.list(attached))"
    case .lockedAlready(let lock): "the account is \(lock)"
    case .notLocked: "the account is not locked"
    case .heldByPolicy(let lock): "the account is not locked by the user; it is \(lock)"
    }
  }

  private static func list(_ attached: [String]) -> String {
    attached.isEmpty
      ? "its server assigned it no policies" : "it has \(attached.map(\.sanitized).joined(separator: ", "))"
  }
}
