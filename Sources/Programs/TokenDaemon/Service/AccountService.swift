// SPDX-License-Identifier: Apache-2.0
package import ControlProtocol
import Cryptography
import HTTP
package import MobileAuth
import PINProtection
import Secrets
package import ServerBackends
import Vault

/// Account commands that need the running service, because the user types PINs at the panel only.
struct AccountService: Sendable {
  let service: TokenService
  let backends: Backends
  /// How long the button is held to confirm an irreversible action.
  let veryLongHold: Duration
  /// Ends the service, after a factory reset has begun.
  var endService: @Sendable () -> Void = {}

  var vault: Vault { backends.vault }
  var environment: TokenEnvironment { backends.environment }
  var operations: AccountOperations { backends.operations }
  var pins: AccountPINs { AccountPINs(backends.context, service) }

  typealias Progress = AccountPINs.Progress

  func enroll(_ options: EnrollmentOptions, _ progress: @escaping Progress) async throws -> EnrollmentResponse {
    if let name = options.name, !isAccountName(name) {
      throw AccountError.invalidName
    }
    do {
      let response = try await performed(options, progress)
      service.note(enrollment: nil)
      return response
    } catch {
      show(enrollment: indication(ofFailure: error))
      throw error
    }
  }

  private func performed(
    _ options: EnrollmentOptions, _ progress: @escaping Progress
  ) async throws -> EnrollmentResponse {
    var options = options
    if let server = options.server {
      options.uri = try await typedActivation(at: server, pins: options.pins, progress)
    }
    try backends.check(options)
    var request = EnrollmentRequest(options)
    request.pinChooser = pinChooser
    request.progress = {
      // An account may be stored before its server receives the registration. Messages may arrive even if the server's
      // answer is lost.
      service.followMailboxes()
      progress($0)
    }
    request.waitsForNetwork = { show(enrollment: $0 ? .lookingForNetwork : .talkingToServer) }
    show(enrollment: .talkingToServer)
    let former = try recordsInUse()
    do {
      let response = try await backends.enrollWhenConnected(request)
      service.reload()
      return response
    } catch {
      // It may have changed an account that is in use, for example by a PIN that is required now.
      if isChanged(since: former) { service.reload() } else { service.followMailboxes() }
      throw error
    }
  }

  /// What the service works with: the accounts that are not being enrolled, and the servers of the active ones.
  private func recordsInUse() throws -> (accounts: [AccountRecord], servers: [TokenServerRecord]) {
    let accounts = try vault.accounts().filter { $0.stage != .enrolling }
    let active = Set(accounts.filter { $0.stage == .active }.map(\.server))
    return (accounts, try vault.servers().filter { active.contains($0.id) })
  }

  private func isChanged(since former: (accounts: [AccountRecord], servers: [TokenServerRecord])) -> Bool {
    guard let present = try? recordsInUse() else { return true }
    return !present.accounts.elementsEqual(former.accounts) { $0.isSame(as: $1) }
      || !present.servers.elementsEqual(former.servers) { $0.isSame(as: $1) }
  }

  /// Logs in. An existing session is logged out first, also one of the same account.
  /// - Parameter authenticator: the identifier of a registered one; nil for the preferred one.
  func logIn(
    _ name: String?, with authenticator: String? = nil, _ progress: @escaping Progress
  ) async throws -> SessionResponse {
    let (account, found) = try find(name)
    return try await reporting(.login, of: account.id, with: authenticator) {
      try await performLogIn(account, at: found, with: authenticator, progress)
    }
  }

  private func performLogIn(
    _ account: AccountRecord, at found: any TokenServerClient, with authenticator: String?,
    _ progress: @escaping Progress
  ) async throws -> (SessionResponse, AuthenticationStep) {
    let server = try sessions(of: account, at: found)
    // The sessions of other servers begin with the PIN.
    let isPIN =
      authenticator == Authenticator.pinIdentifier || authenticator == nil && !(found is any UserAuthenticators)
    let authenticators = isPIN ? nil : try authenticators(of: account, at: found)
    let wanted = try await authenticators?.ofLogin(authenticator, progress)
    let former = try await logOut()
    let (session, used): (UserSession, String)
    if let authenticators, let wanted {
      (session, used) = try await service.panelTasks.perform(at: account.server) { panel in
        try await authenticators.logIn(with: wanted, on: panel, progress)
      }
    } else {
      (session, used) = (try await logInWithPIN(account, at: server, progress), Authenticator.pinIdentifier)
    }
    service.set(session)
    return (
      response(of: session, serverNotified: former.serverNotified),
      AuthenticationStep(.succeeded(.login, session.info), of: account.id, authenticator: used)
    )
  }

  func logInWithPIN(
    _ account: AccountRecord, at server: any UserSessions, _ progress: @escaping Progress
  ) async throws -> UserSession {
    let length = try await server.pinLength(of: account.id)
    return try await service.panelTasks.perform(at: account.server) { panel in
      try await pins.logIn(account, at: server, length: length, on: panel, progress)
    }
  }

  func logOut() async throws -> SessionResponse {
    guard let session = service.session else { return SessionResponse() }
    // End the session locally first: the user is logged out even if the server does not respond.
    try pins.endSession(of: session.account)
    let isNotified = try await notifyServer(ofLogout: session)
    report(AuthenticationStep(.loggedOut(isServerNotified: isNotified), of: session.account))
    return SessionResponse(serverNotified: isNotified)
  }

  private func notifyServer(ofLogout session: UserSession) async throws -> Bool {
    let account = try vault.accounts().first { $0.id == session.account }
    guard let server = account.flatMap(service.server(of:)) as? any UserSessions else { return false }
    do { try await server.logOut(session) } catch { return false }
    return true
  }

  func changePIN(_ name: String?, _ progress: @escaping Progress) async throws -> SessionResponse {
    let account = try operations.activeAccount(name)
    if let pin = account.pin, pin.verifier == .token {
      return try await reportingPINChange(of: account.id) {
        try await service.panelTasks.perform(at: account.server) { panel in
          try await pins.change(of: account.id, length: pin.length, on: panel, progress)
        }
        return SessionResponse(account: account.id.text)
      }
    }
    if try operations.backend(of: account) is any FirstPIN {
      return try await reportingPINChange(of: account.id) {
        try await pins.chooseFirst(of: account.id, progress) { try await newPIN(keeping: $0) }
        return SessionResponse(account: account.id.text)
      }
    }
    return try await changePINAtServer(of: name, progress)
  }

  private func reportingPINChange<Result>(
    of account: AccountID, _ body: () async throws -> Result
  ) async throws -> Result {
    try await reporting(.pinChange, of: account, with: Authenticator.pinIdentifier) {
      let result = try await body()
      return (
        result, AuthenticationStep(.succeeded(.pinChange, nil), of: account, authenticator: Authenticator.pinIdentifier)
      )
    }
  }

  private func changePINAtServer(of name: String?, _ progress: @escaping Progress) async throws -> SessionResponse {
    let (account, found) = try find(name)
    let server = try sessions(of: account, at: found)
    let length = try await server.pinLength(of: account.id)
    if service.session?.isOfPIN(of: account.id) == false { _ = try await logOut() }
    let session = try await reportingPINChange(of: account.id) {
      try await service.panelTasks.perform(at: account.server) { panel in
        try await pins.change(of: account, at: server, length: length, on: panel, progress)
      }
    }
    service.set(session)
    return response(of: session, serverNotified: nil)
  }

  /// Removes an account whose PIN is forgotten. A new activation code enrolls the account again, with a new PIN.
  func forget(_ name: String, _ progress: @escaping Progress) async throws -> RemovalResponse {
    let account = try operations.account(name)
    try await service.panelTasks.perform(at: account.server) { panel in
      progress("hold the button for \(veryLongHold.inSeconds) to forget \(account.id)")
      try await PanelDialog(panel, in: environment).veryLongHold()
    }
    let notification = try await operations.remove(account, through: service.server(of: account)) { _ in
      "forgotten at the panel"
    }
    if let warning = notification.warning(about: account) { progress(warning) }
    service.reload()
    return RemovalResponse(removed: account.id.text, serverNotified: notification.isConfirmed)
  }

  // MARK: New PINs

  /// Whether a PIN can be typed on this board.
  var hasKeypad: Bool { backends.context.board?.hasKeypad == true }

  /// Nil on a board without a keypad.
  private var pinChooser: PINChooser? {
    guard hasKeypad else { return nil }
    return PINChooser {
      try await newPIN(keeping: $0)
    } confirm: {
      try await service.panelTasks.perform { panel in await panel.show(.confirmed) }
    }
  }

  /// Prompts for a new PIN at the panel, when the panel is free.
  private func newPIN(keeping policy: PINPolicy) async throws -> PIN {
    try await service.panelTasks.perform { panel in
      try await PanelDialog(panel, in: environment).newPIN(keeping: policy)
    }
  }

  // MARK: Accounts and sessions

  /// The token server of an account, if users can log in to it.
  func sessions(of account: AccountRecord, at server: any TokenServerClient) throws -> any UserSessions {
    guard let server = server as? any UserSessions else {
      throw AccountError.withoutSessions(account.id)
    }
    return server
  }

  func find(_ name: String?) throws -> (AccountRecord, any TokenServerClient) {
    let account = try operations.activeAccount(name)
    guard let server = service.server(of: account) else {
      throw CommandError(.unavailable, "the service has not connected to \(account.server) yet; retry")
    }
    return (account, server)
  }

  private func response(of session: UserSession, serverNotified: Bool?) -> SessionResponse {
    SessionResponse(
      account: session.account.text, secondsLeft: max(0, (session.until - environment.now).components.seconds),
      serverNotified: serverNotified, info: session.info.map { ScriptInfo($0) })
  }
}

extension EnrollmentRequest {
  package init(_ options: EnrollmentOptions) {
    self.init(options.uri)
    name = options.name
    authorities = options.authorities
    pins = options.pins
    dropsPins = options.dropsPins
    asksPIN = options.asksPIN
    mailbox = options.mailbox
    allowedOrigins = options.allowedOrigins.map { HTTPOrigin($0)?.text ?? $0 }
    networkWait = .seconds(options.networkWait)
  }
}

extension AccountResponse {
  package init(_ account: AccountRecord) {
    self.init(account: account.id.text, server: account.server.text, profile: account.profile)
  }
}
