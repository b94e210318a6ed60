// SPDX-License-Identifier: Apache-2.0
import DisplayText
import HTTP
import MobileAuth
import ReferenceProtocol
import ServerBackends

extension TokenServerError {
  /// The fault for an error response of the device API.
  init(_ response: HTTPResponse) {
    guard let problem = try? JSON.decode(Problem.self, from: response.body), let slug = problem.slug else {
      self.init(unexplained: response)
      return
    }
    let detail = (problem.detail ?? problem.title).sanitized
    self =
      switch slug {
      case .deviceDeregistered: .deviceDeregistered
      case .userDeregistered: .userDeregistered
      case .outdatedApp, .outdatedOS: .outdated(detail)
      case .notAuthenticated, .actionNotAllowed: .notAuthenticated(detail)
      case .alreadyEnrolled, .pushTokenInUse: .alreadyEnrolled(detail)
      case .userAlreadyEnrolled: .userAlreadyEnrolled(detail)
      case .enrollmentDisabled, .featureDisabled: .enrollmentDisabled(detail)
      case .disenrolled: .disenrolled
      case .notEnrolled, .keysNotExchanged: .notEnrolled
      case .alreadyHandled: .alreadyHandled(problem.state.map(RemoteState.init) ?? .failed)
      case .invalidDatetime: .clockWrong
      case .configurationInvalid: .configurationInvalid(detail)
      case .notFound, .expired: .requestNotFound
      case .answerInvalid, .invalidRequest, .idempotencyConflict: .answerInvalid(detail)
      case .rateLimited: .rateLimited(retryAfter: response.retryAfter)
      case .pinIncorrect: FailureCounts(problem).map { .pinIncorrect($0) } ?? TokenServerError(unexplained: response)
      case .authenticatorDeregistered, .authenticatorError, .biometricFailed, .customFailed:
        .authenticatorFailed(AuthenticatorFailure(problem, slug))
      case .authenticatorAlreadyRegistered, .authenticatorInvalid, .authenticatorNotRegistered,
        .authenticatorNotSupported, .customDisabled, .pinNotRemovable:
        .authenticatorRefused(number: slug.code, detail)
      }
  }

  /// The fault for an error response of an OAuth endpoint (RFC 6749 §5.2).
  init(oauth response: HTTPResponse) {
    guard let error = try? JSON.decode(OAuthError.self, from: response.body) else {
      self.init(unexplained: response)
      return
    }
    let detail = (error.errorDescription ?? error.error).sanitized
    self =
      switch (error.errorCode, error.error) {
      case (9002, _): .deviceDeregistered
      case (9003, _): .userDeregistered
      case (9004, _), (9005, _): .outdated(detail)
      case (9009, _): FailureCounts(error).map { .pinIncorrect($0) } ?? TokenServerError(unexplained: response)
      case (9022, _), (9027, _), (9030, _): .authenticatorFailed(AuthenticatorFailure(error))
      // The script could not be run. It is not asked again without the user.
      case (10000, _) where error.customInfo != nil: .authenticatorFailed(AuthenticatorFailure(error))
      case (9015, _), (10006, _), (10007, _), (10020, _):
        .authenticatorRefused(number: error.errorCode ?? 10000, detail)
      case (9031, _): .clockWrong
      case (10001, _): .configurationInvalid(detail)
      case (nil, OAuthError.invalidClient):
        .configurationInvalid("it does not accept this device's client credentials (\(detail))")
      case (_, "slow_down"), (_, "temporarily_unavailable"): .rateLimited(retryAfter: response.retryAfter)
      default: response.status >= 500 ? TokenServerError(unexplained: response) : .refused(detail)
      }
  }
}

extension DeviceConfiguration {
  /// - Throws: `.outdated` or `.configurationInvalid` if this token and the server support no common version of the
  ///   device protocol.
  func checkProtocolVersions() throws(TokenServerError) {
    guard let mismatch = ProtocolMismatchError(device: .supported, server: protocolVersions) else { return }
    switch mismatch.outdated {
    case .device: throw .outdated(mismatch.description)
    case .server: throw .configurationInvalid(mismatch.description)
    }
  }
}

extension FailureCounts {
  /// The maximum number of attempts: the LED blinks each of those that are left.
  static let maximum = 10

  /// Nil if the counts are out of range: unchecked numbers of a server must not become an index or a number of blinks.
  /// Of more than `maximum` attempts, the last ones count.
  init?(max: Int?, previous: Int?) {
    guard let max, let previous, (1...100).contains(max), (0...max).contains(previous) else { return nil }
    let limit = Swift.min(max, Self.maximum)
    self.init(max: limit, previous: limit - Swift.min(max - previous, limit))
  }

  fileprivate init?(_ problem: Problem) {
    self.init(max: problem.maxFailureCount, previous: problem.previousFailureCount)
  }
  fileprivate init?(_ error: OAuthError) { self.init(max: error.maxFailureCount, previous: error.previousFailureCount) }
}

extension AuthenticatorFailure {
  fileprivate init(_ problem: Problem, _ slug: Problem.Slug) {
    self.init(
      number: slug.code, reason: (problem.detail ?? problem.title).sanitized,
      info: problem.customInfo.map(AuthenticatorInfo.init),
      isRevoked: slug == .authenticatorDeregistered || problem.authenticatorRevoked == true,
      endsRequest: problem.state.map { $0 != .open } ?? false)
  }

  fileprivate init(_ error: OAuthError) {
    let number = error.errorCode ?? Problem.Slug.customFailed.code
    self.init(
      number: number, reason: (error.errorDescription ?? error.error).sanitized,
      info: error.customInfo.map(AuthenticatorInfo.init),
      isRevoked: number == Problem.Slug.authenticatorDeregistered.code || error.authenticatorRevoked == true)
  }
}

extension AuthenticatorInfo {
  init(_ info: CustomInfo) { self.init(status: info.status, data: info.data.cut(atMost: Self.longestData)) }
}

extension RemoteState {
  init(_ state: RequestState) {
    self =
      switch state {
      case .open: .open
      case .authenticated: .authenticated
      case .rejected: .rejected
      case .failed: .failed
      case .expired: .expired
      case .canceled: .canceled
      case .superseded: .superseded
      }
  }
}
