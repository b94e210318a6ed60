// SPDX-License-Identifier: Apache-2.0

/// How a request ended on this token.
enum RequestOutcome: Sendable, Equatable {
  /// The server confirmed the user's decision.
  /// - Parameters:
  ///   - authenticator: the identifier of the one that approved it; nil if none was needed.
  ///   - underlyingError: why an authenticator canceled; nil for other answers.
  case answered(
    Decision, receipt: String, authenticator: String? = nil, AuthenticatorInfo? = nil, underlyingError: String? = nil)
  /// A step failed before the server confirmed a decision.
  case notApproved(TokenServerError)
  /// Another answer, the portal or the server ended it.
  case elsewhere(RemoteState)
  case expired
  /// It is no longer listed.
  /// - Parameter why: what is known of the reason.
  case delisted(String)
  /// An answer may have counted, which can no longer be found out.
  case unknown(String)
}

extension RequestOutcome {
  var auditKind: AuditEntry.Kind { if case .unknown = self { .unconfirmed } else { .settled } }

  /// The detail of the audit entry.
  var detail: String {
    switch self {
    case .answered(.accept, let receipt, _, _, _): "approved, receipt \(receipt)"
    // Number of the error catalog: canceled by the user.
    case .answered(.deny(.canceled), let receipt, _, _, _):
      "denied (\(DenialReason.canceled.rawValue)), receipt \(receipt) (\(PanelDialog.canceledNumber))"
    case .answered(.deny(let reason), let receipt, _, _, _): "denied (\(reason.rawValue)), receipt \(receipt)"
    case .notApproved(let error): "not approved: \(error)"
    case .elsewhere(.authenticated): "approved elsewhere"
    case .elsewhere(.rejected): "denied elsewhere"
    case .elsewhere(let state) where state.isWithoutAnswer: state.rawValue
    case .elsewhere(let state): "ended at the token server: \(state.rawValue)"
    case .expired: "expired"
    case .delisted(let why): why
    case .unknown(let why): "permanently unknown: \(why)"
    }
  }

  /// What programs are notified of.
  var event: AuthenticationStep.Event {
    switch self {
    case .answered(.deny(.canceled), _, _, _, let why):
      .requestFailed(
        .init(
          number: PanelDialog.canceledNumber,
          reason: why.map { "canceled by the authenticator: \($0)" } ?? "canceled at the panel", underlyingError: why))
    case .answered(let decision, _, _, let info, _): .requestHandled(decision, info)
    case .notApproved(let error): .requestFailed(.init(error))
    case .elsewhere(let state) where state.isWithoutAnswer: gone(state.rawValue)
    case .elsewhere(let state): .requestFailed(.init(.alreadyHandled(state)))
    case .expired: gone(detail)
    case .delisted(let why): gone(why)
    case .unknown: .requestFailed(.init(.outcomeUnknown(detail)))
    }
  }

  private func gone(_ why: String) -> AuthenticationStep.Event {
    .requestFailed(.init(number: TokenServerError.requestNotFound.number, reason: why))
  }

  var authenticator: String? { if case .answered(_, _, let authenticator, _, _) = self { authenticator } else { nil } }
}

extension RemoteState {
  /// Whether the request ended without an answer.
  fileprivate var isWithoutAnswer: Bool {
    switch self {
    case .expired, .canceled, .superseded: true
    case .open, .authenticated, .rejected, .failed: false
    }
  }
}
