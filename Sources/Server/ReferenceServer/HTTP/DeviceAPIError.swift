// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import ReferenceProtocol

/// An error response of the device API.
struct DeviceAPIError: Error {
  let slug: Problem.Slug
  var detail: String?
  var state: RequestState?
  var headers: HTTPFields = [:]
  /// The subject of the removal, with 9002, 9003, 9020 and 9021.
  var gone: Gone?

  init(
    _ slug: Problem.Slug, _ detail: String? = nil, state: RequestState? = nil, headers: HTTPFields = [:],
    gone: Gone? = nil
  ) {
    self.slug = slug
    self.detail = detail
    self.state = state
    self.headers = headers
    self.gone = gone
  }

  func problem(at issuer: String, revocations: [String]? = nil) -> Problem {
    var problem = Problem(slug, issuer: issuer, detail: detail, state: state)
    problem.revocations = revocations
    return problem
  }

  /// An invalid knowledge assertion: no PIN attempt was counted.
  init(_ refusal: KnowledgeAssertion.VerificationError) {
    switch refusal {
    case .invalid(let what): self.init(.invalidRequest, "the assertion's \(what) is wrong")
    case .clockWrong: self.init(.invalidDatetime, "the assertion's times are more than ten minutes off")
    }
  }

  /// Error 9020 or 9021 for a profile without keys or without a push enrollment.
  init(lacksKeysOf profile: Profile) {
    self.init(
      profile.isDisenrolled ? .disenrolled : .notEnrolled,
      gone: Gone(clientID: profile.clientID, profileID: profile.id, isKeysAlone: true))
  }

  init(_ refusal: PINVerifier.VerificationError) {
    switch refusal {
    case .conflict: self.init(.idempotencyConflict)
    case .noPIN: self.init(.actionNotAllowed, "the profile has no PIN")
    case .overtaken: self.init(.actionNotAllowed, "the profile changed meanwhile")
    }
  }

  /// The DPoP proof or the access token was rejected (RFC 9449 §7.1).
  static func challenge(_ error: String, _ detail: String) -> DeviceAPIError {
    DeviceAPIError(
      .notAuthenticated, detail, headers: [.wwwAuthenticate: "DPoP error=\"\(error)\", algs=\"ES256\""])
  }
}
