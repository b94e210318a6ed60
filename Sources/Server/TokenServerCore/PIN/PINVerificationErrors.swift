// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol

extension Problem {
  /// The error for a device about a wrong PIN.
  /// - Returns: nil if the PIN was correct.
  package init?(_ outcome: PINVerificationOutcome, issuer: String, nonce: String? = nil) {
    switch outcome {
    case .right: return nil
    case .wrong(let counts):
      self.init(.pinIncorrect, issuer: issuer)
      self.nonce = nonce
      set(counts)
    case .limitReached(let counts):
      self.init(.userDeregistered, issuer: issuer, detail: "too many wrong PINs")
      set(counts)
    }
  }

  private mutating func set(_ counts: ProfileFailureCounts) {
    maxFailureCount = counts.maxFailureCount
    previousFailureCount = counts.previousFailureCount
    remainingFailureCount = counts.remainingFailureCount
  }
}

extension OAuthError {
  /// - Returns: nil if the PIN was correct.
  package init?(_ outcome: PINVerificationOutcome) {
    let counts: ProfileFailureCounts
    switch outcome {
    case .right: return nil
    case .wrong(let left):
      self.init("invalid_grant", "The PIN is wrong.", code: Problem.Slug.pinIncorrect.code)
      counts = left
    case .limitReached(let all):
      self.init("invalid_grant", "Too many wrong PINs.", code: Problem.Slug.userDeregistered.code)
      counts = all
    }
    maxFailureCount = counts.maxFailureCount
    previousFailureCount = counts.previousFailureCount
    remainingFailureCount = counts.remainingFailureCount
  }
}
