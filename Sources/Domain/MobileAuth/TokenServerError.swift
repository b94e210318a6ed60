// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// The errors of a token server. Each has a number of the error catalog and exactly one local effect.
package enum TokenServerError: Error, Equatable, Sendable {
  /// This board has no network: nothing was sent.
  case noNetwork(String)
  /// No connection, no response in time, or a response of another program: the outcome is unknown.
  case unreachable(String)
  /// The server's certificate is not trusted: nothing was sent.
  case untrusted(String)
  case deviceDeregistered
  case userDeregistered
  /// An unsigned 9002, 9003, 9020 or 9021, which takes effect only when a second query confirms it.
  case unconfirmedRemoval(number: Int)
  /// The last wrong PIN that this token's own verifier allows: the account was wiped.
  case pinsUsedUp
  case outdated(String)
  /// The PIN was wrong; with the number of wrong and remaining attempts.
  case pinIncorrect(FailureCounts)
  /// The chosen option is not the option that the portal shows.
  case choiceIncorrect(FailureCounts)
  /// An authenticator other than the PIN did not prove the user.
  case authenticatorFailed(AuthenticatorFailure)
  /// An authenticator cannot be used in this way: unknown, not registered, already registered, or not supported.
  case authenticatorRefused(number: Int, String)
  case notAuthenticated(String)
  case alreadyEnrolled(String)
  /// The user is enrolled on another device.
  case userAlreadyEnrolled(String)
  case enrollmentDisabled(String)
  case disenrolled
  case notEnrolled
  /// The request ended before this answer.
  case alreadyHandled(RemoteState)
  case clockWrong
  case configurationInvalid(String)
  case requestNotFound
  case answerInvalid(String)
  /// The outcome cannot be determined.
  case outcomeUnknown(String)
  /// For another recipient, malformed, forged, or of a kind that this token cannot answer.
  case notHandleable(String)
  /// The account is locked at this token, as described; the request stays pending.
  case locked(String)
  /// The server limits the rate of requests; nil if it did not say how long to wait.
  case rateLimited(retryAfter: Duration?)
  /// The server's administrator has disabled the function; it may be enabled again.
  case switchedOff(String)
  case refused(String)

  /// The effect on the token, whichever step failed.
  package enum LocalEffect: Sendable, Equatable {
    /// Retry with backoff; nothing is lost.
    case retry
    case wipeServer
    case wipeAccount
    case dropKeys
    /// Ask the user for the PIN, or for the other authenticator, again.
    case askAgain
    /// Forget the request.
    case drop
    /// Leave the request pending and do not show it.
    case block
    /// Only an operator can resolve the error: show it, and contact this server again after some minutes.
    case stop
  }

  package var effect: LocalEffect {
    switch self {
    // A clock can be set right, and a network process that was taken over can say that it is wrong.
    case .noNetwork, .unreachable, .untrusted, .rateLimited, .switchedOff, .clockWrong: .retry
    case .deviceDeregistered: .wipeServer
    case .userDeregistered, .pinsUsedUp: .wipeAccount
    case .disenrolled, .notEnrolled: .dropKeys
    case .authenticatorFailed(let failure) where failure.endsRequest: .drop
    case .pinIncorrect, .choiceIncorrect, .authenticatorFailed: .askAgain
    case .unconfirmedRemoval, .alreadyHandled, .requestNotFound, .outcomeUnknown, .answerInvalid, .notHandleable,
      .authenticatorRefused, .refused:
      .drop
    case .locked: .block
    case .outdated, .notAuthenticated, .alreadyEnrolled, .userAlreadyEnrolled, .enrollmentDisabled,
      .configurationInvalid:
      .stop
    }
  }

  /// Whether a waiting user should retry soon. False for an untrusted certificate, which does not change in that time.
  package var isRetryable: Bool {
    if case .untrusted = self { false } else { effect == .retry }
  }

  /// Number of the error catalog: below 10000 for the user, from 10000 on for the operator.
  package var number: Int {
    switch self {
    case .noNetwork: 9000
    case .unreachable, .untrusted, .outcomeUnknown: 9001
    case .deviceDeregistered: 9002
    case .userDeregistered, .pinsUsedUp: 9003
    case .unconfirmedRemoval(let number): number
    case .outdated: 9004
    case .pinIncorrect: 9009
    case .authenticatorFailed(let failure): failure.number
    case .authenticatorRefused(let number, _): number
    case .notAuthenticated: 9010
    case .alreadyEnrolled: 9016
    case .userAlreadyEnrolled: 9018
    case .enrollmentDisabled: 9017
    case .disenrolled: 9020
    case .notEnrolled: 9021
    case .alreadyHandled: 9029
    case .clockWrong: 9031
    case .rateLimited, .switchedOff, .refused, .choiceIncorrect, .locked: 10000
    case .configurationInvalid: 10001
    case .requestNotFound: 10013
    case .answerInvalid: 10015
    case .notHandleable: 10018
    }
  }
}

extension TokenServerError: CustomStringConvertible {
  package var description: String { "\(explanation) (\(number))" }

  /// The description without the number.
  package var explanation: String { unlimitedExplanation.sanitized(atMost: 500) }

  /// As the server sent it: of any length and with any characters.
  private var unlimitedExplanation: String {
    switch self {
    case .noNetwork(let why), .unreachable(let why), .untrusted(let why): why
    case .deviceDeregistered: "the token server has removed this device; enroll again"
    case .userDeregistered: "the token server has removed this account from the device; enroll again"
    case .unconfirmedRemoval:
      "the token server says that it has removed this account, its keys or this device, but has not signed that: "
        + "nothing is answered until it is asked again, after a minute"
    case .pinsUsedUp: "too many wrong PINs: the account is gone from this device; enroll again"
    case .outdated(let what): "the token server no longer accepts this version: \(what)"
    case .pinIncorrect(let counts): "wrong PIN, \(counts)"
    case .authenticatorFailed(let failure): "\(failure)"
    case .authenticatorRefused(_, let why): why
    case .choiceIncorrect(let counts): "not what the portal shows, \(counts)"
    case .outcomeUnknown(let why): why
    case .switchedOff(let why): "the token server does not allow it at the moment: \(why)"
    case .notAuthenticated(let why): "the token server does not accept this token's credentials: \(why)"
    case .alreadyEnrolled(let why): "already enrolled: \(why)"
    case .userAlreadyEnrolled(let why): "the user is already enrolled on another device: \(why)"
    case .enrollmentDisabled(let why): "the token server does not allow enrollment: \(why)"
    case .disenrolled: "mobile authentication was switched off for this account; enroll again"
    case .notEnrolled: "this account is not enrolled for mobile authentication; enroll again"
    case .alreadyHandled(let state): "the request has already ended: \(state.rawValue)"
    case .clockWrong: "the token server says that this board's clock is wrong"
    case .configurationInvalid(let why): "the token server's configuration does not fit this token: \(why)"
    case .requestNotFound: "the request is unknown or has expired"
    case .answerInvalid(let why): "the token server refused the answer: \(why)"
    case .notHandleable(let why): "the request cannot be handled: \(why)"
    case .locked(let how): "the account is \(how)"
    case .rateLimited: "the token server limits the rate of requests"
    case .refused(let why): "the token server refused: \(why)"
    }
  }
}

extension TokenServerError {
  /// Whether this error has an effect even if the request of its step has ended: on the account or on the counts of
  /// wrong entries.
  var concernsAccount: Bool {
    switch effect {
    case .wipeServer, .wipeAccount, .dropKeys, .askAgain: true
    case .retry, .drop, .block, .stop: false
    }
  }

  /// What this error means for a step for which the user has entered nothing: the request ends. A server that asks for
  /// another entry again and again would keep the panel while the request is valid.
  var withoutEntry: TokenServerError {
    effect == .askAgain ? .notHandleable("the token server refuses an entry, but none was made") : self
  }

  /// What this error means after an answer: only the entry that the answer contains can be wrong.
  func plausible(after response: SealedResponse) -> TokenServerError {
    let challenge = response.request.contents.challenge
    switch self {
    case .pinIncorrect where response.decision == .accept && response.hasPIN: return self
    case .authenticatorFailed:
      guard response.decision == .accept, !response.hasPIN, case .custom = challenge else { return withoutEntry }
      return self
    case .choiceIncorrect:
      guard response.decision == .accept, case .choice = challenge else { return withoutEntry }
      return self
    default: return withoutEntry
    }
  }
}
