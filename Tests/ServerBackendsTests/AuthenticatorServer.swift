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
  private let registration: [UInt8]
  private let state: Mutex<State>

  /// - Parameters:
  ///   - listed: what the server lists; nil if it is not reachable.
  ///   - preferred: what the user has chosen instead of the PIN.
  ///   - faults: thrown by the next logins, registrations and deregistrations, one each.
  ///   - registration: what drivers get back.
  init(
    _ listed: [Authenticator]?, preferred: String? = nil, faults: [TokenServerError] = [], registration: [UInt8] = []
  ) {
    self.listed = listed
    self.registration = registration
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

  func use(
    _ authenticator: String, of account: AccountID, for step: DriverCall.Step
  ) throws(TokenServerError) -> AuthenticatorUse {
    let call = DriverCall(
      step: step, server: "h", account: account.text, authenticator: authenticator,
      challenge: [UInt8](repeating: 7, count: 32), registration: registration)
    return AuthenticatorUse(account: account, call: call, identifier: "use")
  }

  func register(
    _ use: AuthenticatorUse, with data: AuthenticatorData, in session: UserSession
  ) async throws(TokenServerError) -> AuthenticatorInfo? {
    try note("register \(use.call.authenticator) with \(data.text) in \(session.accessToken)")
    return AuthenticatorInfo(status: 2000, data: "registered")
  }

  func registerBiometric(
    _ use: AuthenticatorUse, with data: AuthenticatorData, typing pin: PIN, in session: UserSession
  ) async throws(TokenServerError) {
    try note("register \(use.call.authenticator) \(data.registration) behind a PIN in \(session.accessToken)")
  }

  func revoke(_ authenticator: String, of account: AccountID, because why: String) {
    state.withLock { $0.calls.append("revoke \(authenticator) of \(account): \(why)") }
  }

  func deregister(
    _ authenticator: String, with data: AuthenticatorData?, in session: UserSession
  ) async throws(TokenServerError) -> Bool {
    try note("deregister \(authenticator) with \(data?.text ?? "nothing") in \(session.accessToken)")
    return listed != nil
  }

  func prefer(_ authenticator: String, of account: AccountID) throws(StateStoreError) {
    state.withLock { $0.preferred = authenticator }
  }

  func logIn(with use: AuthenticatorUse, data: AuthenticatorData) async throws(TokenServerError) -> UserSession {
    try note("log in with \(use.call.authenticator): \(data.text)")
    return UserSession(
      account: use.account, until: MonotonicInstant(uptime: .seconds(600)), accessToken: "U",
      authenticator: use.call.authenticator)
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

extension AuthenticatorData {
  fileprivate var text: String { bytes.withExposedSecret { String(decoding: $0, as: UTF8.self) } }
}
