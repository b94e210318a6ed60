// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

extension Problem {
  /// The error for a device about a failed attempt with an authenticator.
  /// - Parameters:
  ///   - nonce: what the next answer must contain; nil if there is none.
  ///   - canUsePIN: whether the same request can be approved with the PIN.
  /// - Returns: nil if the attempt succeeded, or could not be verified.
  package init?(
    _ outcome: AuthenticatorOutcome, issuer: String, nonce: String? = nil, canUsePIN: Bool = false
  ) {
    switch outcome {
    case .right, .notRun: return nil
    case .wrong(let info):
      self.init(.customFailed, issuer: issuer)
      customInfo = info
    case .noResult(let info):
      self.init(.authenticatorError, issuer: issuer, detail: "the script of the authenticator gave no result")
      customInfo = info
      return
    case .revoked(let info, let kind):
      self.init(kind == .biometric ? .biometricFailed : .customFailed, issuer: issuer)
      (customInfo, authenticatorRevoked) = (info, true)
    }
    self.nonce = nonce
    fallback = canUsePIN ? .pin : nil
  }
}

extension OAuthError {
  /// - Returns: nil if the attempt succeeded, or could not be verified.
  package init?(_ outcome: AuthenticatorOutcome) {
    guard let problem = Problem(outcome, issuer: "") else { return nil }
    if case .noResult = outcome {
      self.init("server_error", "The script of the authenticator gave no result.", code: problem.code)
    } else {
      self.init("invalid_grant", "The authenticator failed.", code: problem.code)
    }
    (customInfo, authenticatorRevoked) = (problem.customInfo, problem.authenticatorRevoked)
  }
}
