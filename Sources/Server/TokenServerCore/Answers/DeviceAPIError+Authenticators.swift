// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

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
