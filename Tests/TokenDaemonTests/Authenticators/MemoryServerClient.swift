// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
import Secrets
import ServerBackends

struct MemoryServerClient: UserAuthenticators {
  let server: MemoryServer
  let enrollments: Enrollments
  let drivers: AuthenticatorDrivers
  let environment: TokenEnvironment

  var id: TokenServerID { MemoryServer.id }

  // MARK: Requests

  func validate() async throws(TokenServerError) -> Validation { Validation() }

  func hints() -> AsyncThrowingStream<Hint, any Error> {
    AsyncThrowingStream { continuation in
      continuation.yield(.connected)
      let polling = Task {
        while !Task.isCancelled {
          try await Task.sleep(for: .milliseconds(20))
          continuation.yield(.pendingChanged)
        }
      }
      continuation.onTermination = { _ in polling.cancel() }
    }
  }

  func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
    server.now.pending.keys.map { transaction in
      PendingMobileAuthRequest(
        transaction: transaction, server: id, account: MemoryServer.account, sentAtMilliseconds: 0,
        timeToLive: .seconds(600), message: "Pay?", deadline: environment.now + .seconds(600))
    }
  }

  func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    guard let authenticator = server.now.pending[pending.transaction] else { throw .requestNotFound }
    let pin = PINChallenge(length: 5, counts: server.counts)
    var challenge = Challenge.pin(pin)
    if server.now.registered.contains(authenticator), let driver = drivers.usable(authenticator, as: .custom) {
      challenge = .custom(CustomChallenge(authenticator: authenticator, fallback: pin, input: driver.input))
    }
    return try pending.opened(
      VerifiedContents(
        transaction: pending.transaction, account: pending.account, type: "payment", challenge: challenge,
        answerContext: []))
  }

  func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse {
    if let pin = response.pin { try server.check(pin) }
    if let data = response.data, let authenticator = response.authenticator {
      _ = try server.run("push", authenticator, data)
    }
    if case .deny = response.decision {
      server.change { $0.calls.append("denied: \(response.underlyingError ?? "by the user")") }
    }
    return response.sealed([])
  }

  func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    let state: RemoteState = response.decision == .accept ? .authenticated : .rejected
    server.answer(response.request.pending.transaction, state)
    let isCustom = response.decision == .accept && !response.hasPIN
    return try response.verdict(state, receipt: "memory", info: isCustom ? MemoryServer.welcome : nil)
  }

  func status(of transaction: TransactionID, account: AccountID) async throws(TokenServerError) -> RemoteStatus {
    RemoteStatus(state: server.now.outcomes[transaction] ?? .open)
  }

  // MARK: UserSessions

  private func session(
    with authenticator: String = Authenticator.pinIdentifier, _ info: AuthenticatorInfo? = nil
  ) -> UserSession {
    UserSession(
      account: MemoryServer.account, until: environment.now + .seconds(600), accessToken: "U",
      authenticator: authenticator, info: info)
  }

  func pinLength(of account: AccountID) async throws(TokenServerError) -> Int { 5 }

  func logIn(_ account: AccountID, typing pin: PIN) async throws(TokenServerError) -> UserSession {
    try server.requireReachable()
    try server.check(pin)
    return session()
  }

  func logOut(_ session: UserSession) async throws(TokenServerError) { try server.requireReachable() }

  func beginPINChange(
    _ account: AccountID, typing pin: PIN, session: UserSession?
  ) async throws(TokenServerError) -> PINChangeTicket { throw .refused("not used") }
  func finishPINChange(
    _ ticket: PINChangeTicket, choosing pin: PIN, parameters: Scrypt.Parameters
  ) async throws -> UserSession { throw TokenServerError.refused("not used") }

  // MARK: UserAuthenticators

  func authenticators(of account: AccountID) async throws(TokenServerError) -> [Authenticator] {
    try server.requireReachable()
    return server.authenticators.map { entry in
      Authenticator(
        identifier: entry.identifier, name: entry.name, kind: entry.kind, isRegistered: entry.isRegistered,
        isPreferred: entry.isPreferred,
        isSupported: entry.kind == .pin || drivers.usable(entry.identifier, as: entry.kind) != nil)
    }
  }

  func storedAuthenticators(of account: AccountID) throws(TokenServerError) -> [Authenticator] {
    server.authenticators.filter(\.isRegistered)
  }

  func hasPreference(_ account: AccountID) -> Bool { server.now.preferred != nil }

  func use(
    _ authenticator: String, of account: AccountID, for step: DriverCall.Step
  ) throws(TokenServerError) -> AuthenticatorUse {
    let call = DriverCall(
      step: step, server: "memory.example", account: account.text, authenticator: authenticator,
      challenge: [UInt8](repeating: 7, count: 32))
    return AuthenticatorUse(account: account, call: call, identifier: "use")
  }

  func register(
    _ use: AuthenticatorUse, with data: AuthenticatorData, in session: UserSession
  ) async throws(TokenServerError) -> AuthenticatorInfo? {
    guard session.isOfPIN(of: use.account) else { throw .notAuthenticated("log in with the PIN") }
    let info = try server.run("registration", use.call.authenticator, data)
    server.change { $0.registered.insert(use.call.authenticator) }
    return info
  }

  func deregister(
    _ authenticator: String, with data: AuthenticatorData?, in session: UserSession
  ) async throws(TokenServerError) -> Bool {
    guard session.isOfPIN(of: session.account) || session.authenticator == authenticator else {
      throw .notAuthenticated("log in with the PIN")
    }
    let text = data?.bytes.withExposedSecret { String(decoding: $0, as: UTF8.self) }
    server.change { state in
      state.calls.append("deregistration \(authenticator) with \(text ?? "nothing")")
      state.registered.remove(authenticator)
      if state.preferred == authenticator { state.preferred = nil }
    }
    return server.now.isReachable
  }

  func prefer(_ authenticator: String, of account: AccountID) throws(StateStoreError) {
    server.change { $0.preferred = authenticator == Authenticator.pinIdentifier ? nil : authenticator }
  }

  func logIn(with use: AuthenticatorUse, data: AuthenticatorData) async throws(TokenServerError) -> UserSession {
    session(with: use.call.authenticator, try server.run("login", use.call.authenticator, data))
  }
}
