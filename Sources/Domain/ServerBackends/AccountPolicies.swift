// SPDX-License-Identifier: Apache-2.0
import DisplayText
import JSONValues
import MobileAuth

/// The conditions that the server's administrator attached to a registration. An account can be used only while all of
/// them hold.
package struct AccountPolicies: Sendable, Equatable {
  package enum ParseError: ReportedError, Equatable {
    case malformed
    package var category: ErrorCategory { .badData }
    package var description: String { "the account's policies are not a JSON object of objects" }
  }

  package static let biometricAvailable = "biometricAvailable"
  static let deviceTampering = "deviceTampering"

  /// The error number that the ForgeRock SDK for iOS (now Ping SDK) uses when a policy forbids a registration.
  package static let violationNumber = 6_100_005

  /// The policies by name. Policies that this token does not know are ignored.
  private let policies: [String: JSONValue]

  /// - Parameter json: a JSON object whose values are objects; nil for no policies.
  /// - Throws: `ParseError.malformed` for any other text.
  package init(_ json: String?) throws(ParseError) {
    guard let json else {
      policies = [:]
      return
    }
    guard case .object(let policies)? = JSONValue(parsing: Array(json.utf8)),
      policies.values.allSatisfy({ if case .object = $0 { true } else { false } })
    else { throw .malformed }
    self.policies = policies
  }

  package var wantsPIN: Bool { policies[Self.biometricAvailable] != nil }

  package var unknownNames: [String] {
    policies.keys.filter { ![Self.biometricAvailable, Self.deviceTampering].contains($0) }.sorted()
  }

  /// A message for the user during enrollment: this token ignores the named policy.
  package static func note(onUnknown name: String) -> String {
    "the policy \(name.sanitized) is unknown to this token and is ignored"
  }

  package var names: [String] { policies.keys.sorted() }

  /// The action that makes a policy hold again; nil for policies that this token does not know.
  static func remedy(for policy: String) -> String? {
    switch policy {
    case biometricAvailable: "choose a PIN with `approval-token pin change`, on a board with a keypad"
    case deviceTampering: "the audit chain must be unchanged by other programs; run `approval-token log --verify`"
    default: nil
    }
  }

  /// The lock of an account whose policy does not hold.
  package static func lock(by policy: String) -> AccountLock { .byPolicy(policy, remedy: remedy(for: policy)) }

  /// Finds the first policy that does not hold. A closure is called only if a policy needs it, because the check can be
  /// slow.
  /// - Parameters:
  ///   - hasPIN: whether the account has a PIN that identifies its user.
  ///   - isTamperedWith: whether the token's own checks found changes by another program.
  package func violation(hasPIN: () -> Bool, isTamperedWith: () -> Bool) -> String? {
    if wantsPIN, !hasPIN() { return Self.biometricAvailable }
    if let policy = policies[Self.deviceTampering] {
      let allowed: Double =
        switch policy["score"] {
        case .integer(let number): Double(number)
        case .fraction(let number): number
        default: 1
        }
      if (isTamperedWith() ? 1 : 0) >= allowed { return Self.deviceTampering }
    }
    return nil
  }
}
