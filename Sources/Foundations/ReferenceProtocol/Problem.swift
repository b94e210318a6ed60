// SPDX-License-Identifier: Apache-2.0
/// `application/problem+json` (RFC 9457) of the device API. Programs use the slug at the end of `type`; `code` is the
/// number of the error catalog, for display.
package struct Problem: Codable, Sendable, Equatable, Error {
  package enum Slug: String, Sendable, CaseIterable {
    case actionNotAllowed = "action-not-allowed"
    case alreadyEnrolled = "already-enrolled"
    case alreadyHandled = "already-handled"
    case answerInvalid = "answer-invalid"
    case authenticatorAlreadyRegistered = "authenticator-already-registered"
    case authenticatorDeregistered = "authenticator-deregistered"
    case authenticatorError = "authenticator-error"
    case authenticatorInvalid = "authenticator-invalid"
    case authenticatorNotRegistered = "authenticator-not-registered"
    case authenticatorNotSupported = "authenticator-not-supported"
    case biometricFailed = "biometric-failed"
    case configurationInvalid = "configuration-invalid"
    case customDisabled = "custom-disabled"
    case customFailed = "custom-failed"
    case deviceDeregistered = "device-deregistered"
    case disenrolled
    /// The spelling remains: earlier tokens know the problem only by this name.
    case enrollmentDisabled = "enrolment-disabled"
    case expired
    case featureDisabled = "feature-disabled"
    case idempotencyConflict = "idempotency-conflict"
    case invalidDatetime = "invalid-datetime"
    case invalidRequest = "invalid-request"
    case keysNotExchanged = "keys-not-exchanged"
    case notAuthenticated = "not-authenticated"
    case notEnrolled = "not-enrolled"
    case notFound = "not-found"
    case outdatedApp = "outdated-app"
    case outdatedOS = "outdated-os"
    case pinIncorrect = "pin-incorrect"
    case pinNotRemovable = "pin-not-removable"
    case pushTokenInUse = "push-token-in-use"
    case rateLimited = "rate-limited"
    case userAlreadyEnrolled = "user-already-enrolled"
    case userDeregistered = "user-deregistered"

    /// The number of the error catalog.
    package var code: Int {
      switch self {
      case .deviceDeregistered: 9002
      case .userDeregistered: 9003
      case .outdatedApp: 9004
      case .outdatedOS: 9005
      case .pinIncorrect: 9009
      case .notAuthenticated: 9010
      case .alreadyEnrolled, .pushTokenInUse: 9016
      case .enrollmentDisabled, .featureDisabled: 9017
      case .authenticatorInvalid: 9015
      case .userAlreadyEnrolled: 9018
      case .disenrolled: 9020
      case .notEnrolled, .keysNotExchanged: 9021
      case .authenticatorDeregistered: 9022
      case .customFailed: 9027
      case .alreadyHandled: 9029
      case .biometricFailed: 9030
      case .invalidDatetime: 9031
      case .rateLimited, .actionNotAllowed, .authenticatorError: 10000
      case .configurationInvalid: 10001
      case .authenticatorAlreadyRegistered: 10004
      case .authenticatorNotSupported: 10006
      case .authenticatorNotRegistered: 10007
      case .pinNotRemovable: 10008
      case .notFound, .expired: 10013
      case .answerInvalid, .invalidRequest, .idempotencyConflict: 10015
      case .customDisabled: 10020
      }
    }

    /// The HTTP status: 401 access token, 403 refused, 404 unknown, 409 conflict with the state, 410 expired, 422
    /// semantic error, 429 rate limit, 500 a script
    /// that cannot be run.
    package var status: Int {
      switch self {
      case .notAuthenticated, .deviceDeregistered: 401
      case .userDeregistered, .outdatedApp, .outdatedOS, .enrollmentDisabled, .featureDisabled, .actionNotAllowed,
        .disenrolled, .notEnrolled, .invalidDatetime, .authenticatorDeregistered, .configurationInvalid,
        .authenticatorNotSupported, .customDisabled:
        403
      case .notFound, .authenticatorInvalid, .authenticatorNotRegistered: 404
      case .authenticatorAlreadyRegistered, .pinNotRemovable, .alreadyEnrolled, .alreadyHandled, .keysNotExchanged,
        .pushTokenInUse, .userAlreadyEnrolled:
        409
      case .expired: 410
      case .invalidRequest: 400
      case .answerInvalid, .biometricFailed, .customFailed, .pinIncorrect, .idempotencyConflict: 422
      case .rateLimited: 429
      case .authenticatorError: 500
      }
    }
  }

  /// `https://HOST/problems/<slug>`.
  package var type: String
  package var title: String
  package var status: Int
  package var detail: String?
  package var code: Int
  package var retryable: Bool
  /// With `already-handled`: the state in which the request ended. With `biometric-failed` and `custom-failed`: the
  /// state in which this answer ended it; nil while it is open.
  package var state: RequestState?
  /// With `pin-incorrect`, `biometric-failed` and `custom-failed`: the required `nonce` of the next answer.
  package var nonce: String?
  /// With `pin-incorrect` and `user-deregistered`.
  package var maxFailureCount: Int?
  package var previousFailureCount: Int?
  package var remainingFailureCount: Int?
  /// With `custom-failed` and `authenticator-error`: the result of the script.
  package var customInfo: CustomInfo?
  /// With `biometric-failed` and `custom-failed`: `pin`, if the same request can be approved with the PIN.
  package var fallback: AuthenticatorKind?
  /// Whether the server has deregistered the authenticator; nil stands for false.
  package var authenticatorRevoked: Bool?
  /// With 9002, 9003, 9020 and 9021: `RevocationNotice`s, Base64 OpenPGP messages.
  package var revocations: [String]?

  enum CodingKeys: String, CodingKey {
    case revocations, fallback
    case customInfo = "custom_info"
    case authenticatorRevoked = "authenticator_revoked"
    case type, title, status, detail, code, retryable, state, nonce
    case maxFailureCount = "max_failure_count"
    case previousFailureCount = "previous_failure_count"
    case remainingFailureCount = "remaining_failure_count"
  }

  package init(_ slug: Slug, issuer: String, detail: String? = nil, state: RequestState? = nil) {
    type = "\(issuer)/problems/\(slug.rawValue)"
    title = slug.rawValue.split(separator: "-").joined(separator: " ")
    status = slug.status
    self.detail = detail
    code = slug.code
    retryable = slug == .rateLimited
    self.state = state
  }

  /// A problem without a type of its own (RFC 9457 §4.2.1), with the number of a general error.
  /// - Parameter title: the phrase of the HTTP status.
  package init(status: Int, title: String, detail: String? = nil, retryable: Bool = false) {
    type = "about:blank"
    self.title = title
    self.status = status
    self.detail = detail
    code = 10000
    self.retryable = retryable
  }

  /// The problem's type; nil for a slug that this version does not know.
  package var slug: Slug? { type.split(separator: "/").last.flatMap { Slug(rawValue: String($0)) } }
}
