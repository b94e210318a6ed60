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

  var vault: Vault { backends.vault }
  var environment: TokenEnvironment { backends.environment }
  var settings: BackendSettings { backends.context.settings }
  var keyDerivation: Scrypt.Parameters { backends.context.keyDerivation }

  typealias Progress = @Sendable (String) -> Void

  func enroll(_ options: EnrollmentOptions, _ progress: @escaping Progress) async throws -> AccountResponse {
    if let name = options.name, !isAccountName(name) {
      throw CommandError(.usage, "a name has 1 to 64 bytes without blanks")
    }
    do { return try await performed(options, progress) } catch {
      showFailure(error)
      throw error
    }
  }

  private func performed(
    _ options: EnrollmentOptions, _ progress: @escaping Progress
  ) async throws -> AccountResponse {
    try backends.check(options)
    var request = EnrollmentRequest(options)
    request.pinChooser = pinChooser
    request.progress = {
      // An account may be stored before its server receives the registration. Messages may arrive even if the server's
      // answer is lost.
      service.followMailboxes()
      progress($0)
    }
    defer { service.followMailboxes() }
    let account = try await backends.enroll(request)
    service.reload()
    return AccountResponse(account)
  }

  /// Logs in with the PIN. An existing session is logged out first, also one of the same account.
  func logIn(_ name: String?, _ progress: @escaping Progress) async throws -> SessionResponse {
    let (account, found) = try find(name)
    let server = try sessions(of: account, at: found)
    let former = try await logOut()
    let length = try await server.pinLength(of: account.id)
    let session = try await service.panelTasks.perform(at: account.server) { panel in
      progress("type the PIN of \(account.id) on the keypad, then Enter")
      return try await withPIN(of: account, at: server, length: length, on: panel) { pin in
        let session = try await server.logIn(account.id, typing: pin)
        try record(.loggedIn, account.id)
        await panel.show(.confirmed)
        return session
      }
    }
    service.set(session)
    return response(of: session, serverNotified: former.serverNotified)
  }

  func logOut() async throws -> SessionResponse {
    guard let session = service.session else { return SessionResponse() }
    // End the session locally first: the user is logged out even if the server does not respond.
    service.set(nil)
    try record(.loggedOut, session.account)
    let account = try vault.accounts().first { $0.id == session.account }
    guard let server = account.flatMap(service.server(of:)) as? any UserSessions else {
      return SessionResponse(serverNotified: false)
    }
    do { try await server.logOut(session) } catch { return SessionResponse(serverNotified: false) }
    return SessionResponse(serverNotified: true)
  }

  func changePIN(_ name: String?, _ progress: @escaping Progress) async throws -> SessionResponse {
    let active = try findActive(name)
    let backend = try backends.backend(of: active)
    if let pin = active.pin, pin.verifier == .token {
      return try await changeOwnPIN(of: active.id, length: pin.length, progress)
    }
    if backend is any FirstPIN { return try await chooseFirstPIN(of: active.id, progress) }
    let (account, found) = try find(name)
    let server = try sessions(of: account, at: found)
    let length = try await server.pinLength(of: account.id)
    if let session = service.session, session.account != account.id { _ = try await logOut() }
    let session = try await service.panelTasks.perform(at: account.server) { panel in
      let dialog = PanelDialog(panel, in: environment)
      progress("type the present PIN of \(account.id) on the keypad, then Enter")
      let ticket = try await withPIN(of: account, at: server, length: length, on: panel) { pin in
        try await beginPINChange(of: account.id, typing: pin, at: server)
      }
      progress("choose a PIN of \(ticket.policy.length) digits: type it on the keypad, press Enter, then repeat")
      let pin = try await dialog.newPIN(keeping: ticket.policy)
      let session = try await finish(ticket, choosing: pin, at: server)
      try record(.pinChanged, account.id, "\(pin.count) digits")
      await dialog.show(.confirmed)
      return session
    }
    service.set(session)
    return response(of: session, serverNotified: nil)
  }

  /// Removes an account whose PIN is forgotten. A new activation code enrolls the account again, with a new PIN.
  func forget(_ name: String, _ progress: @escaping Progress) async throws -> RemovalResponse {
    guard let account = try vault.accounts().first(where: { $0.id.text == name }) else {
      throw CommandError(.usage, "no account \"\(name)\"; see `approval-token accounts`")
    }
    try await service.panelTasks.perform(at: account.server) { panel in
      progress("hold the button for \(veryLongHold.inSeconds) to forget \(account.id)")
      try await PanelDialog(panel, in: environment).veryLongHold()
    }
    var serverNotified = false
    do {
      if let client = try service.client(for: account) as? any Deregistration {
        try await client.deregister(account.id)
        serverNotified = true
      }
    } catch { progress("the token server could not be notified: \(explanation(of: error))") }
    try vault.wipe(
      ifThere: account.id, environment.auditEntry(.removed, account: account.id, detail: "forgotten at the panel"))
    service.reload()
    return RemovalResponse(removed: account.id.text, serverNotified: serverNotified)
  }

  // MARK: PIN entry with retries

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
  func newPIN(keeping policy: PINPolicy) async throws -> PIN {
    try await service.panelTasks.perform { panel in
      try await PanelDialog(panel, in: environment).newPIN(keeping: policy)
    }
  }

  private func withPIN<Result: Sendable>(
    of account: AccountRecord, at server: any UserSessions, length: Int, on panel: any Panel,
    _ body: (PIN) async throws -> Result
  ) async throws -> Result {
    let dialog = PanelDialog(panel, in: environment)
    while true {
      let counts: FailureCounts
      let pin = try await dialog.currentPIN(length: length)
      switch try await attempt(of: account, at: server, with: pin, on: panel, body) {
      case .right(let result):
        service.noteRightPIN(of: account.id)
        return result
      case .wrong(let reported): counts = reported
      }
      service.note(counts, of: account.id)
      try record(.pinWrong, account.id, "\(counts)")
      await panel.show(.pinWrong(remaining: counts.remaining))
    }
  }

  private enum Attempt<Result: Sendable>: Sendable {
    case right(Result)
    case wrong(FailureCounts)
  }

  private func attempt<Result: Sendable>(
    of account: AccountRecord, at server: any UserSessions, with pin: PIN, on panel: any Panel,
    _ body: (PIN) async throws -> Result
  ) async throws -> Attempt<Result> {
    await panel.show(.talkingToServer)
    do { return .right(try await body(pin)) } catch TokenServerError.pinIncorrect(let counts) {
      return .wrong(counts)
    } catch let fault as TokenServerError {
      let loss = EnrollmentRevocation(fault, at: account.server, account.id, of: server.enrollments)
      if let outcome = try loss?.apply(on: vault, in: environment) {
        if let entry = outcome.entry { service.log(entry) }
        if outcome != .enrolledAgain { await showLoss(of: account.id, by: fault, on: panel) }
        service.reload()
      }
      throw fault
    }
  }

  /// Shows that the account must be enrolled again. The indication lasts until an account is enrolled.
  func showLoss(of account: AccountID, by fault: TokenServerError, on panel: any Panel) async {
    if fault.effect == .wipeAccount { service.noteLoss(of: account) }
    await panel.show(.mustEnroll)
  }

  private func finish(
    _ ticket: PINChangeTicket, choosing pin: PIN, at server: any UserSessions
  ) async throws -> UserSession {
    do {
      return try await server.finishPINChange(ticket, choosing: pin, parameters: keyDerivation)
    } catch let fault as TokenServerError {
      switch fault {
      case .noNetwork(let why), .unreachable(let why):
        throw CommandError(
          .unavailable,
          "the token server did not confirm the new PIN: either the old or the new PIN is valid. The token asks the "
            + "server as soon as it is reachable (\(why))")
      default: throw fault
      }
    }
  }

  // MARK: Accounts and sessions

  /// The token server of an account, if users can log in to it.
  private func sessions(of account: AccountRecord, at server: any TokenServerClient) throws -> any UserSessions {
    guard let server = server as? any UserSessions else {
      throw CommandError(.usage, "\(account.id) has no login with this token: its server has no sessions")
    }
    return server
  }

  func find(_ name: String?) throws -> (AccountRecord, any TokenServerClient) {
    let account = try findActive(name)
    guard let server = service.server(of: account) else {
      throw CommandError(.unavailable, "the service has not connected to \(account.server) yet; retry")
    }
    return (account, server)
  }

  func findActive(_ name: String?) throws -> AccountRecord {
    let active = try vault.accounts().filter { $0.stage == .active }
    guard let account = name == nil && active.count == 1 ? active.first : active.first(where: { $0.id.text == name })
    else {
      throw CommandError(
        .usage,
        name.map { "no active account \"\($0)\"; see `approval-token accounts`" } ?? CommandError.nameOne(of: active))
    }
    return account
  }

  private func response(of session: UserSession, serverNotified: Bool?) -> SessionResponse {
    SessionResponse(
      account: session.account.text, secondsLeft: max(0, (session.until - environment.now).components.seconds),
      serverNotified: serverNotified)
  }

  func record(_ kind: AuditEntry.Kind, _ account: AccountID, _ detail: String = "") throws(StateStoreError) {
    let entry = environment.auditEntry(kind, account: account, detail: detail)
    try vault.record(entry)
    service.log(entry)
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
  }
}

extension AccountResponse {
  package init(_ account: AccountRecord) {
    self.init(account: account.id.text, server: account.server.text, profile: account.profile)
  }
}

extension PanelDialog {
  /// Prompts until a PIN satisfies the policy, then shows that the PIN is being stored or sent.
  func newPIN(keeping policy: PINPolicy) async throws -> PIN {
    let pin = try await newPIN(length: policy.length) { policy.violation(by: $0)?.ordinal }
    await show(.talkingToServer)
    return pin
  }
}
