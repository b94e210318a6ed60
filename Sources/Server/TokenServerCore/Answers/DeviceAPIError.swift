// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// An error that a device receives as problem details.
package struct DeviceAPIError: Error {
  package let slug: Problem.Slug
  package var detail: String?
  package var state: RequestState?
  /// A header of the response.
  package var header: Header?
  /// The subject of the removal, with 9002, 9003, 9020 and 9021.
  package var gone: Gone?

  /// The result of the script, with 9027 and `authenticator-error`.
  package var customInfo: CustomInfo?

  package enum Header: Sendable, Equatable {
    /// The value of `WWW-Authenticate`.
    case challenge(String)
    case retryAfter(seconds: Int)
  }

  package init(
    _ slug: Problem.Slug, _ detail: String? = nil, state: RequestState? = nil, header: Header? = nil,
    gone: Gone? = nil
  ) {
    self.slug = slug
    self.detail = detail
    self.state = state
    self.header = header
    self.gone = gone
  }

  package func problem(at issuer: String, revocations: [String]? = nil) -> Problem {
    var problem = Problem(slug, issuer: issuer, detail: detail, state: state)
    problem.revocations = revocations
    problem.customInfo = customInfo
    return problem
  }

  /// An invalid knowledge assertion: no PIN attempt was counted.
  package init(_ refusal: KnowledgeAssertion.VerificationError) {
    switch refusal {
    case .invalid(let what): self.init(.invalidRequest, "the assertion's \(what) is wrong")
    case .clockWrong: self.init(.invalidDatetime, "the assertion's times are more than ten minutes off")
    }
  }

  /// Error 9020 or 9021 for a profile without keys or without a push enrollment.
  package init(lacksKeysOf profile: Profile) {
    self.init(
      profile.isDisenrolled ? .disenrolled : .notEnrolled,
      gone: Gone(clientID: profile.clientID, profileID: profile.id, isKeysAlone: true))
  }

  package init(_ refusal: PINAttemptVerifier.VerificationError) {
    switch refusal {
    case .conflict: self.init(.idempotencyConflict)
    case .noPIN: self.init(.actionNotAllowed, "the profile has no PIN")
    case .overtaken: self.init(.actionNotAllowed, "the profile changed meanwhile")
    }
  }

  /// An answer to a request that has ended in this state.
  init(tooLate state: RequestState) {
    self.init(state == .expired ? .expired : .alreadyHandled, state: state)
  }

  /// The DPoP proof or the access token was rejected (RFC 9449 §7.1).
  package static func challenge(_ error: String, _ detail: String) -> DeviceAPIError {
    DeviceAPIError(
      .notAuthenticated, detail, header: .challenge("DPoP error=\"\(error)\", algs=\"ES256\""))
  }
}
