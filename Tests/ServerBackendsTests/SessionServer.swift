// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import MobileAuth
import Secrets
import ServerBackends
import Synchronization

/// A server client with user sessions. It records the session of each PIN change, and the chosen PINs.
final class SessionServer: UserSessions, ScriptedForwarding {
  private struct State {
    var faults: [TokenServerError]
    var sessions: [String?] = []
    var chosen: [PIN] = []
  }

  let scripted = ScriptedServerClient()
  private let known: Set<String>
  private let changeFault: TokenServerError?
  private let state: Mutex<State>

  /// - Parameters:
  ///   - known: the access tokens of the sessions that it knows.
  ///   - faults: thrown by the next logins and starts of PIN changes, one each.
  ///   - changeFault: thrown at the end of a PIN change.
  init(known: Set<String> = [], faults: [TokenServerError] = [], changeFault: TokenServerError? = nil) {
    self.known = known
    self.changeFault = changeFault
    state = Mutex(State(faults: faults))
  }

  /// The access token of each PIN change; nil for one without a session.
  var sessions: [String?] { state.withLock { $0.sessions } }
  var chosen: [PIN] { state.withLock { $0.chosen } }

  private func fail() throws(TokenServerError) {
    if let fault = state.withLock({ $0.faults.isEmpty ? nil : $0.faults.removeFirst() }) { throw fault }
  }

  private func session(of account: AccountID) -> UserSession {
    UserSession(account: account, until: MonotonicInstant(uptime: .seconds(600)), accessToken: "U")
  }

  func pinLength(of account: AccountID) async throws(TokenServerError) -> Int { 5 }

  func logIn(_ account: AccountID, typing pin: PIN) async throws(TokenServerError) -> UserSession {
    try fail()
    return session(of: account)
  }

  func logOut(_ session: UserSession) async throws(TokenServerError) { throw .refused("not used") }

  func beginPINChange(
    _ account: AccountID, typing pin: PIN, session: UserSession?
  ) async throws(TokenServerError) -> PINChangeTicket {
    state.withLock { $0.sessions.append(session?.accessToken) }
    if session.map({ !known.contains($0.accessToken) }) == true { throw .notAuthenticated("no") }
    try fail()
    return PINChangeTicket(
      profile: "P", id: "1", token: SecretBytes(copying: []), session: session ?? self.session(of: account),
      policy: BackendSettings.pinPolicy(digits: 5))
  }

  func finishPINChange(
    _ ticket: PINChangeTicket, choosing pin: PIN, parameters: Scrypt.Parameters
  ) async throws -> UserSession {
    if let changeFault { throw changeFault }
    state.withLock { $0.chosen.append(pin) }
    return ticket.session
  }
}
