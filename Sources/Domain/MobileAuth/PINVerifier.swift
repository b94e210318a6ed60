// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// Verifies the PINs of accounts whose token server does not verify them. Counts an attempt durably before it verifies
/// the PIN, and wipes the account after the last allowed attempt.
package protocol PINVerifier: Sendable {
  /// Returns the counts of wrong attempts; nil if the account has no PIN.
  func counts(of account: AccountID) throws(StateStoreError) -> FailureCounts?
  func verify(_ pin: PIN, of account: AccountID) throws(StateStoreError) -> PINVerificationResult
}

extension PINVerifier {
  /// Returns if the PIN is correct. Waits first if a wrong attempt imposed a delay.
  /// - Throws: `.pinIncorrect`, `.pinsUsedUp`, `.notHandleable` for a storage error.
  package func approve(
    _ pin: PIN, of account: AccountID, in environment: TokenEnvironment
  ) async throws(TokenServerError) {
    while true {
      let verificationResult: PINVerificationResult
      do { verificationResult = try verify(pin, of: account) } catch { throw .notHandleable("\(error)") }
      switch verificationResult {
      case .right: return
      case .wrong(let counts): throw .pinIncorrect(counts)
      case .wiped: throw .pinsUsedUp
      case .mustWait(let wait):
        do { try await environment.sleep(for: wait) } catch { throw .unreachable("canceled") }
      }
    }
  }
}

package enum PINVerificationResult: Sendable, Equatable {
  case right
  case wrong(FailureCounts)
  /// The PIN was wrong and was the last allowed attempt.
  case wiped
  /// Too early after a wrong attempt: the attempt was neither counted nor verified.
  case mustWait(Duration)
}

/// The result of one attempt with a PIN that decrypts keys.
package enum PINUnlockResult: Sendable {
  /// The account's keys; release them after use.
  case unlocked(SecretBytes)
  /// The attempt was counted; the next one must wait.
  case wrong(FailureCounts, wait: Duration)
  /// The attempt was the last one allowed: the account was wiped.
  case wiped
  /// Too early after a wrong attempt: the PIN was neither verified nor counted.
  case mustWait(Duration)
}
