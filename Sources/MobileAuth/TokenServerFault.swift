/// Everything that can go wrong with a token server, as the domain sees it. Each has its number of the error
/// catalogue and exactly one local effect.
public enum TokenServerFault: Error, Equatable, Sendable {
  /// No connection, no answer in time, or an answer that is not the server's: the outcome is not known.
  case unreachable(String)
  /// Its certificate is not one we trust: nothing was sent.
  case untrusted(String)
  case deviceDeregistered
  case userDeregistered
  /// One of 9002, 9003, 9020 and 9021 that the server has not signed: it counts when it is said again.
  case unconfirmedRemoval(number: Int)
  /// The last wrong PIN that this token's own judge allows: the account is gone.
  case pinsUsedUp
  case outdated(String)
  /// The PIN that was typed is wrong; so many were, and so many more are allowed.
  case pinIncorrect(FailureCounts)
  /// What was chosen is not what the portal shows.
  case choiceIncorrect(FailureCounts)
  case notAuthenticated(String)
  case alreadyEnrolled(String)
  case enrolmentDisabled(String)
  case disenrolled
  case notEnrolled
  /// Somebody or something ended the request before this answer.
  case alreadyHandled(RemoteState)
  case clockWrong
  case configurationInvalid(String)
  case requestNotFound
  case answerInvalid(String)
  /// The answer may or may not have counted, and nobody will ever say.
  case outcomeUnknown(String)
  /// Not ours, malformed, forged, or of a kind this token cannot answer.
  case notHandleable(String)
  /// The account is locked at this token, in this way; the request waits.
  case locked(String)
  /// The server wants us to wait; nil if it did not say how long.
  case rateLimited(retryAfter: Duration?)
  /// The server's administrator has switched off what we ask for; it may be switched on again.
  case switchedOff(String)
  case refused(String)

  /// What the token does about it, once and whatever the step was.
  public enum LocalEffect: Sendable, Equatable {
    /// Try again with back-off; nothing is lost.
    case retry
    case wipeServer
    case wipeAccount
    case dropKeys
    /// Ask the person for the PIN again.
    case askAgain
    /// Forget the request.
    case drop
    /// Leave the request as it is, and ask nobody.
    case withhold
    /// Stop talking to this server until a person has looked.
    case stop
  }

  public var effect: LocalEffect {
    switch self {
    case .unreachable, .untrusted, .rateLimited, .switchedOff: .retry
    case .deviceDeregistered: .wipeServer
    case .userDeregistered, .pinsUsedUp: .wipeAccount
    case .disenrolled, .notEnrolled: .dropKeys
    case .pinIncorrect, .choiceIncorrect: .askAgain
    case .unconfirmedRemoval, .alreadyHandled, .requestNotFound, .outcomeUnknown, .answerInvalid, .notHandleable,
      .refused:
      .drop
    case .locked: .withhold
    case .outdated, .notAuthenticated, .alreadyEnrolled, .enrolmentDisabled, .clockWrong, .configurationInvalid: .stop
    }
  }

  /// Whether a person who waits is helped by another try in a moment: a certificate does not change meanwhile.
  public var isWorthRepeating: Bool {
    if case .untrusted = self { false } else { effect == .retry }
  }

  /// Number of the error catalogue: below 10000 it is for the person, from there on for the administrator.
  public var number: Int {
    switch self {
    case .unreachable, .untrusted, .outcomeUnknown: 9001
    case .deviceDeregistered: 9002
    case .userDeregistered, .pinsUsedUp: 9003
    case .unconfirmedRemoval(let number): number
    case .outdated: 9004
    case .pinIncorrect: 9009
    case .notAuthenticated: 9010
    case .alreadyEnrolled: 9016
    case .enrolmentDisabled: 9017
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

extension TokenServerFault: CustomStringConvertible {
  public var description: String { "\(explanation.forPeople(atMost: 500)) (\(number))" }

  private var explanation: String {
    switch self {
    case .unreachable(let why), .untrusted(let why): why
    case .deviceDeregistered: "the token server has removed this device; enrol again"
    case .userDeregistered: "the token server has removed this account from the device; enrol again"
    case .unconfirmedRemoval:
      "the token server says that it has removed this account, its keys or this device, but has not signed that: nothing "
        + "is answered until it is asked again, after a minute"
    case .pinsUsedUp: "too many wrong PINs: the account is gone from this device; enrol again"
    case .outdated(let what): "the token server no longer accepts this version: \(what)"
    case .pinIncorrect(let counts): "wrong PIN, \(counts)"
    case .choiceIncorrect(let counts): "not what the portal shows, \(counts)"
    case .outcomeUnknown(let why): why
    case .switchedOff(let why): "the token server does not allow it at the moment: \(why)"
    case .notAuthenticated(let why): "the token server does not accept our credentials: \(why)"
    case .alreadyEnrolled(let why): "already enrolled: \(why)"
    case .enrolmentDisabled(let why): "the token server does not allow enrolment: \(why)"
    case .disenrolled: "mobile authentication was switched off for this account; enrol again"
    case .notEnrolled: "this account is not enrolled for mobile authentication; enrol again"
    case .alreadyHandled(let state): "the request has already ended: \(state.rawValue)"
    case .clockWrong: "the token server says that this board's clock is wrong"
    case .configurationInvalid(let why): "the token server's configuration does not fit this token: \(why)"
    case .requestNotFound: "the request is unknown or has expired"
    case .answerInvalid(let why): "the token server refused the answer: \(why)"
    case .notHandleable(let why): "the request cannot be handled: \(why)"
    case .locked(let how): "the account is \(how)"
    case .rateLimited: "the token server asks us to slow down"
    case .refused(let why): "the token server refused: \(why)"
    }
  }
}
