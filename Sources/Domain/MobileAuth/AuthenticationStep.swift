// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// A step of a login, of a registration or deregistration of an authenticator, or of a request: what programs that
/// follow the token are notified of. Contains no secret; the texts are sanitized.
package struct AuthenticationStep: Sendable, Equatable {
  /// What the user is asked for, or what a command does.
  package enum Purpose: String, Sendable {
    case login, registration, deregistration, request
    /// An account without keys is enrolled again.
    case enrollment
    case pinChange = "pin-change"
    /// A one-time password is shown whose secret is encrypted with a PIN-derived key.
    case oneTimePassword = "one-time-password"
  }

  package enum Event: Sendable, Equatable {
    case started(Purpose)
    /// The panel asks for an input.
    /// - Parameter after: why the previous input did not count; nil for the first one, and if the user changed to the
    ///   PIN.
    case challenged(Purpose, ChallengeSummary, after: Failure?)
    case succeeded(Purpose, AuthenticatorInfo?)
    case failed(Purpose, Failure)
    /// The server confirmed the user's decision.
    case requestHandled(Decision, AuthenticatorInfo?)
    case requestFailed(Failure)
    /// An answer was sent, and whether it counts is not known yet.
    case requestUnconfirmed(Failure)
    case loggedOut(isServerNotified: Bool)
    /// - Parameter isServerNotified: nil for an authenticator that the server does not know.
    case deregistered(isServerNotified: Bool?)
    /// The server has deregistered an authenticator.
    case revoked(Failure)
    /// The account, or its keys, are gone.
    case mustEnroll(Failure)
  }

  /// Why something failed.
  package struct Failure: Sendable, Equatable {
    /// Number of the error catalog; nil for errors without a number.
    package let number: Int?
    package let reason: String
    /// The result of the server's script; nil if none was asked.
    package let info: AuthenticatorInfo?
    /// Why an authenticator canceled; nil for other failures.
    package let underlyingError: String?
    /// Whether the authenticator is no longer registered.
    package let isRevoked: Bool

    package init(number: Int?, reason: String, info: AuthenticatorInfo? = nil, underlyingError: String? = nil) {
      (self.number, self.reason, self.info, isRevoked) = (number, reason.sanitized(atMost: 500), info, false)
      self.underlyingError = underlyingError?.sanitized(atMost: 256)
    }

    package init(_ error: TokenServerError) {
      number = error.number
      underlyingError = nil
      if case .authenticatorFailed(let failure) = error {
        (reason, info, isRevoked) = (failure.reason.sanitized(atMost: 500), failure.info, failure.isRevoked)
      } else {
        (reason, info, isRevoked) = (error.explanation, nil, false)
      }
    }
  }

  package let account: AccountID
  package let event: Event
  package var transaction: TransactionID?
  /// The identifier; nil if none is involved, or it is not known yet.
  package var authenticator: String?

  package init(
    _ event: Event, of account: AccountID, _ transaction: TransactionID? = nil, authenticator: String? = nil
  ) {
    self.account = account
    self.event = event
    self.transaction = transaction
    self.authenticator = authenticator
  }
}

/// What the panel asks for.
package struct ChallengeSummary: Sendable, Equatable {
  package enum Kind: String, Sendable {
    /// A hold of the button.
    case confirmation
    case pin
    /// One of the options that the portal may show.
    case choice
    case custom
    /// A finger on the fingerprint reader.
    case biometric
    /// The digits that the server has signed with the request, such as the amount.
    case readBack = "read-back"
    /// The request can only be denied.
    case denialOnly = "denial-only"
  }

  package let kind: Kind
  /// The wrong attempts at what is asked for; nil if they are not known.
  package var counts: FailureCounts?
  /// The identifiers of other authenticators that are asked at the same time.
  package var alternatives: [String] = []
  /// Whether the user may type the PIN instead.
  package var takesPIN = false

  package init(
    _ kind: Kind, counts: FailureCounts? = nil, alternatives: [String] = [], takesPIN: Bool = false
  ) {
    self.kind = kind
    self.counts = counts
    self.alternatives = alternatives
    self.takesPIN = takesPIN
  }
}
