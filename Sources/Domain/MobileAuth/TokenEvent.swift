// SPDX-License-Identifier: Apache-2.0
/// An event for the log: one line each, without secrets.
package enum TokenEvent: Sendable, Equatable {
  case connected(TokenServerID)
  case disconnected(TokenServerID, TokenServerError)
  /// The server reported an error after which the token does not contact it until the operator has resolved the error.
  case stopped(TokenServerID, TokenServerError)
  case retrying(TokenServerID, TransactionID, TokenServerError)
  case audited(AuditEntry)
  case stateStoreFailed(StateStoreError)
  /// The number of the server's requests that expired before they were announced.
  case expiredUnannounced(TokenServerID, Int)
  /// The counts of wrong PIN attempts that the PIN's verifier reported last.
  case counted(AccountID, FailureCounts)
  /// The token deleted the account while it was in use: after the last wrong PIN attempt, or because the server has
  /// removed it.
  case accountLost(AccountID)
  /// A problem of one account that the operator should check. Other accounts of the server work.
  case trouble(AccountID, String)
  /// A delivered push message that is for no account of this token or not authentic.
  case dropped(String)
  /// A code that the user types into the portal to complete the login.
  case code(AccountID, TransactionID, PortalCode)
  /// The account's messages are now delivered to its new mailbox.
  case mailboxMoved(AccountID)
  /// A step that programs follow. What of it belongs into the log is an audit entry.
  case step(AuthenticationStep)
  /// Accounts or servers were removed from the state store: the service must be reloaded.
  case rosterChanged
}

extension TokenEvent: CustomStringConvertible {
  package var description: String {
    switch self {
    case .connected(let server): "connected to \(server)"
    case .disconnected(let server, let fault): "not connected to \(server): \(fault)"
    case .stopped(let server, let fault): "stopped using \(server): \(fault)"
    case .retrying(_, let transaction, let fault): "request \(transaction): trying again: \(fault)"
    case .audited(let entry): entry.description
    case .expiredUnannounced(let server, let count):
      "\(count) requests of \(server) expired before they were shown at the panel"
    case .counted(let account, let counts):
      "account \(account): \(counts.previous) wrong PINs, \(counts)"
    case .accountLost(let account): "account \(account): removed from this token; it must be enrolled again"
    case .trouble(let account, let what): "account \(account): \(what)"
    case .dropped(let what): "dropped: \(what)"
    // The code is not logged: logs outlive the login, and others can read them.
    case .code(let account, _, _): "account \(account): a code has to be typed into the portal"
    case .stateStoreFailed(let fault): "nothing can be answered: \(fault)"
    case .mailboxMoved(let account): "account \(account): its messages are delivered to its new mailbox"
    case .step(let step): "account \(step.account): \(step.event)"
    case .rosterChanged: "the accounts have changed"
    }
  }
}

extension AuditEntry: CustomStringConvertible {
  package var description: String {
    let subject = [transaction.map { "request \($0)" }, account.map { "account \($0)" }].compactMap(\.self)
    return ([kind.rawValue] + subject).joined(separator: " ") + (detail.isEmpty ? "" : ": \(detail)")
  }
}
