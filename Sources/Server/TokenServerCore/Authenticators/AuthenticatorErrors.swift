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
    self.init("invalid_grant", "The authenticator failed.", code: problem.code)
    (customInfo, authenticatorRevoked) = (problem.customInfo, problem.authenticatorRevoked)
  }
}

extension DeviceAPIError {
  package init(_ error: AuthenticatorVerifier.VerificationError) {
    switch error {
    case .conflict: self.init(.idempotencyConflict)
    case .notRegistered: self.init(.authenticatorDeregistered, "the authenticator is not registered")
    case .notOffered: self.init(.authenticatorNotSupported, "the server does not offer the authenticator")
    case .busy: self.init(.rateLimited, "too many scripts run", header: .retryAfter(seconds: 1))
    case .overtaken: self.init(.authenticatorDeregistered, "the authenticator was deregistered meanwhile")
    }
  }

  /// A script that could not be run.
  package init(notRun info: CustomInfo) {
    self.init(.authenticatorError, "the script of the authenticator could not be run")
    customInfo = info
  }
}
