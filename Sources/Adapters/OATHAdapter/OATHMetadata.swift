// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import PINProtection
import PingAMAdapter
import Secrets
import ServerBackends

/// The metadata of an account that only generates one-time passwords, stored beside the secret.
struct OATHMetadata {
  /// The number of digits of the PIN that protects the secret; nil without a PIN.
  var pinLength: Int?
  /// JSON as received. The account is locked while a policy in it does not hold.
  var policies: String?
  /// Whether the user has locked the account.
  var isLocked = false

  private static let lockMark = "locked"

  init(pinLength: Int?, policies: String?) { (self.pinLength, self.policies) = (pinLength, policies) }

  init(_ account: AccountRecord) {
    let parts = account.secrets.withExposedSecret { String(decoding: $0, as: UTF8.self) }
      .split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    let words = parts.first?.split(separator: " ").map(String.init) ?? []
    // A length that no PIN can have is ignored: no such PIN can be typed.
    pinLength = words.first.flatMap { Int($0) }.flatMap { PINPolicy.lengths.contains($0) ? $0 : nil }
    isLocked = words.contains(Self.lockMark)
    policies = parts.count > 1 ? String(parts[1]) : nil
  }

  /// The stored form: a line with the PIN length and the word "locked", then the policies as received.
  var encoded: SecretBytes {
    let words: [String?] = [pinLength.map { String($0) }, isLocked ? Self.lockMark : nil]
    let text = words.compactMap(\.self).joined(separator: " ") + (policies.map { "\n" + $0 } ?? "")
    return SecretBytes(copying: Array(text.utf8))
  }

  func lock(isTamperedWith: () -> Bool) throws -> AccountLock? {
    if isLocked { return .manual(policy: nil) }
    return try violatedPolicy(isTamperedWith: isTamperedWith).map { AccountPolicies.lock(by: $0) }
  }

  func violatedPolicy(isTamperedWith: () -> Bool) throws -> String? {
    guard let policies else { return nil }
    return try PingAM.violatedPolicy(
      among: policies, hasPIN: pinLength != nil, isTamperedWith: isTamperedWith)
  }
}
