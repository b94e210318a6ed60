// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth

extension EventLine {
  /// - Returns: nil for an event that programs are not notified of.
  init?(_ event: TokenEvent, sequence: Int64, atMilliseconds moment: Int64) {
    func line(_ name: String, about server: TokenServerID, _ failure: Failure? = nil) -> EventLine {
      var line = EventLine(name, sequence: sequence, atMilliseconds: moment)
      (line.server, line.failure) = (server.text, failure)
      return line
    }
    switch event {
    case .connected(let server): self = line("connected", about: server)
    case .disconnected(let server, let error): self = line("disconnected", about: server, Failure(error))
    case .stopped(let server, let error): self = line("stopped", about: server, Failure(error))
    case .step(let step): self.init(step, sequence: sequence, atMilliseconds: moment)
    case .retrying, .audited, .stateStoreFailed, .expiredUnannounced, .counted, .accountLost, .trouble, .dropped, .code,
      .mailboxMoved, .rosterChanged:
      return nil
    }
  }

  private init(_ step: AuthenticationStep, sequence: Int64, atMilliseconds moment: Int64) {
    self.init(step.event.name, sequence: sequence, atMilliseconds: moment)
    account = step.account.text
    transaction = step.transaction?.text
    authenticator = step.authenticator
    switch step.event {
    case .started: break
    case .challenged(let purpose, let challenge, let failure):
      self.purpose = purpose.rawValue
      kind = challenge.kind.rawValue
      counts = challenge.counts.map { Counts(max: $0.max, previous: $0.previous, remaining: $0.remaining) }
      fallbacks = challenge.alternatives + (challenge.takesPIN ? [Authenticator.pinIdentifier] : [])
      self.failure = failure.map { Failure($0) }
    case .succeeded(_, let info): self.info = info.map { ScriptInfo($0) }
    case .requestHandled(let decision, let info):
      self.info = info.map { ScriptInfo($0) }
      switch decision {
      case .accept: self.decision = "accept"
      case .deny(let reason): (self.decision, denialReason) = ("deny", reason.rawValue)
      }
    case .failed(_, let failure), .requestFailed(let failure), .requestUnconfirmed(let failure), .revoked(let failure),
      .mustEnroll(let failure):
      self.failure = Failure(failure)
    case .loggedOut(let isNotified):
      (isServerNotified, self.failure) = (isNotified, Failure(isNotified, SessionResponse.logoutUnconfirmed))
    case .deregistered(let isNotified):
      (isServerNotified, self.failure) = (
        isNotified, Failure(isNotified, AuthenticatorsResponse.deregistrationUnconfirmed)
      )
    }
  }
}

extension AuthenticationStep.Event {
  fileprivate var name: String {
    switch self {
    case .started(.login): "authentication-started"
    case .started(let purpose): "\(purpose.rawValue)-started"
    case .challenged: "challenge"
    case .succeeded(.login, _): "authenticated"
    case .succeeded(.registration, _): "authenticator-registered"
    case .succeeded(.pinChange, _): "pin-changed"
    case .succeeded(let purpose, _): "\(purpose.rawValue)-done"
    case .failed(.login, _): "authentication-failed"
    case .failed(let purpose, _): "\(purpose.rawValue)-failed"
    case .requestHandled: "request-handled"
    case .requestFailed: "request-failed"
    case .requestUnconfirmed: "request-unconfirmed"
    case .loggedOut: "logged-out"
    case .deregistered: "authenticator-deregistered"
    case .revoked: "authenticator-revoked"
    case .mustEnroll: "must-enroll"
    }
  }
}

extension EventLine.Failure {
  fileprivate init(_ error: TokenServerError) { self.init(code: error.number, reason: error.explanation) }

  /// Nil if the server was notified, or does not need to be.
  fileprivate init?(_ isServerNotified: Bool?, _ number: Int) {
    guard isServerNotified == false else { return nil }
    self.init(code: number, reason: "the token server was not notified")
  }

  fileprivate init(_ failure: AuthenticationStep.Failure) {
    self.init(code: failure.number, reason: failure.reason)
    info = failure.info.map { ScriptInfo($0) }
    underlyingError = failure.underlyingError
    isAuthenticatorRevoked = failure.isRevoked ? true : nil
  }
}

extension ScriptInfo {
  init(_ info: AuthenticatorInfo) { self.init(status: info.status, data: info.data) }
}
