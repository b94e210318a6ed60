// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import MobileAuth
import Secrets
import ServerBackends
import Synchronization

/// A server client whose account has authenticators. It records what it is asked to change.
final class AuthenticatorServer: UserAuthenticators, ScriptedForwarding {
  private struct State {
    var faults: [TokenServerError] = []
    var preferred: String?
    var calls: [String] = []
  }

  let scripted = ScriptedServerClient()
  private let sessions = SessionServer()
  private let listed: [Authenticator]?
  private let state: Mutex<State>

  /// - Parameters:
  ///   - listed: what the server lists; nil if it is not reachable.
  ///   - preferred: what the user has chosen instead of the PIN.
  ///   - faults: thrown by the next logins, registrations and deregistrations, one each.
  init(_ listed: [Authenticator]?, preferred: String? = nil, faults: [TokenServerError] = []) {
    self.listed = listed
    state = Mutex(State(faults: faults, preferred: preferred))
  }

  /// The PIN, and "number" in a state.
  static func list(
    registered: Bool = true, preferred: Bool = false, supported: Bool = true, _ kind: Authenticator.Kind = .custom
  ) -> [Authenticator] {
    [
      Authenticator(
        identifier: Authenticator.pinIdentifier, name: "PIN", kind: .pin, isRegistered: true, isPreferred: !preferred,
        isSupported: true),
      Authenticator(
        identifier: "number", name: "Type your PIN", kind: kind, isRegistered: registered, isPreferred: preferred,
        isSupported: supported),
    ]
  }

  var calls: [String] { state.withLock { $0.calls } }

  private func note(_ call: String) throws(TokenServerError) {
    let fault = state.withLock { state in
      state.calls.append(call)
      return state.faults.isEmpty ? nil : state.faults.removeFirst()
    }
    if let fault { throw fault }
  }

  // MARK: UserAuthenticators

  func authenticators(of account: AccountID) async throws(TokenServerError) -> [Authenticator] {
    guard let listed else { throw .unreachable("cable") }
    return listed
  }

  func storedAuthenticators(of account: AccountID) throws(TokenServerError) -> [Authenticator] { Self.list() }

  func hasPreference(_ account: AccountID) -> Bool { state.withLock { $0.preferred != nil } }

  func register(
    _ authenticator: String, with code: EnteredDigits, in session: UserSession
  ) async throws(TokenServerError) {
    try note("register \(authenticator) in \(session.accessToken)")
  }

  func deregister(_ authenticator: String, in session: UserSession) async throws(TokenServerError) -> Bool {
    try note("deregister \(authenticator) in \(session.accessToken)")
    return listed != nil
  }

  func prefer(_ authenticator: String, of account: AccountID) throws(StateStoreError) {
    state.withLock { $0.preferred = authenticator }
  }

  func logIn(
    _ account: AccountID, with authenticator: String, code: EnteredDigits
  ) async throws(TokenServerError) -> UserSession {
    try note("log in with \(authenticator)")
    return UserSession(account: account, until: MonotonicInstant(uptime: .seconds(600)), accessToken: "U")
  }

  // MARK: UserSessions

  func pinLength(of account: AccountID) async throws(TokenServerError) -> Int {
    try await sessions.pinLength(of: account)
  }
  func logIn(_ account: AccountID, typing pin: PIN) async throws(TokenServerError) -> UserSession {
    try await sessions.logIn(account, typing: pin)
  }
  func logOut(_ session: UserSession) async throws(TokenServerError) { try await sessions.logOut(session) }
  func beginPINChange(
    _ account: AccountID, typing pin: PIN, session: UserSession?
  ) async throws(TokenServerError) -> PINChangeTicket {
    try await sessions.beginPINChange(account, typing: pin, session: session)
  }
  func finishPINChange(
    _ ticket: PINChangeTicket, choosing pin: PIN, parameters: Scrypt.Parameters
  ) async throws -> UserSession {
    try await sessions.finishPINChange(ticket, choosing: pin, parameters: parameters)
  }
}
