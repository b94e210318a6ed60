// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import Secrets
import ServerBackends

/// The authenticators of accounts. The PIN is one of them; it is always there for an account that has one.
extension AccountService {
  func authenticators(_ name: String?) async throws -> AuthenticatorsResponse {
    let (account, found) = try find(name)
    return AuthenticatorsResponse(
      account, try await authenticators(of: account, at: found).all)
  }

  /// Registers a custom authenticator, after a hold of the button.
  func registerAuthenticator(_ id: String, of name: String, _ progress: @escaping Progress) async throws
    -> AuthenticatorsResponse
  {
    let (account, found) = try find(name)
    let (server, all) = try await authenticators(of: account, at: found)
    let authenticator = try known(id, in: all, of: account)
    guard !authenticator.isRegistered else {
      throw CommandError(.refused, "\(id) is registered for \(account.id) already", number: 10004)
    }
    guard authenticator.isSupported, authenticator.kind == .custom else {
      throw CommandError(
        .refused,
        "this token cannot use \(id): it has no reader for it, and it is not in keypad_codes of the "
          + "configuration", number: 10006)
    }
    let session = try await userSession(of: account, at: server, progress)
    try await service.panelTasks.perform(at: account.server) { panel in
      let dialog = PanelDialog(panel, in: environment)
      progress("hold the button to register \(id) for \(account.id)")
      try await dialog.hold()
      progress("type the code of \(id), not the PIN, on the keypad, then Enter")
      let code = try await dialog.code()
      await dialog.show(.talkingToServer)
      do { try await server.register(id, with: code, in: session) } catch let error as TokenServerError {
        if case .authenticatorFailed = error { await dialog.show(.noSuchChoice) }
        throw sessionEnded(by: error, account.id)
      }
      await dialog.show(.confirmed)
    }
    return AuthenticatorsResponse(account, try await server.authenticators(of: account.id))
  }

  func deregisterAuthenticator(_ id: String, of name: String, _ progress: @escaping Progress) async throws
    -> AuthenticatorsResponse
  {
    let (account, found) = try find(name)
    guard id != Authenticator.pinIdentifier else {
      throw CommandError(.refused, "the PIN of \(account.id) cannot be deregistered", number: 10008)
    }
    let server = try authenticators(at: found, of: account)
    let all: [Authenticator]
    // Without its server, an authenticator is removed only here.
    do { all = try await server.authenticators(of: account.id) } catch {
      guard error.effect == .retry, let stored = try? server.storedAuthenticators(of: account.id) else { throw error }
      all = stored
    }
    try requireRegistered(known(id, in: all, of: account), of: account)
    let session = try await userSession(of: account, at: server, progress)
    let isNotified: Bool
    do { isNotified = try await server.deregister(id, in: session) } catch {
      throw sessionEnded(by: error, account.id)
    }
    try pins.record(.authenticatorDeregistered, account.id, isNotified ? id : "\(id), only on this token (9028)")
    var response = AuthenticatorsResponse(
      account,
      isNotified ? try await server.authenticators(of: account.id) : all.filter { $0.identifier != id })
    response.serverNotified = isNotified
    return response
  }

  func preferAuthenticator(_ id: String, of name: String) async throws -> AuthenticatorsResponse {
    let (account, found) = try find(name)
    let (server, all) = try await authenticators(of: account, at: found)
    try requireRegistered(known(id, in: all, of: account), of: account)
    try server.prefer(id, of: account.id)
    try pins.record(.authenticatorPreferred, account.id, id)
    return AuthenticatorsResponse(account, try await server.authenticators(of: account.id))
  }

  /// The authenticator of a login.
  /// - Parameter id: that the user named; nil for the preferred one. One that is unknown or not registered is an error,
  ///   never replaced by the PIN.
  /// - Returns: nil for the PIN.
  func authenticator(
    _ id: String?, of account: AccountRecord, at found: any TokenServerClient
  ) async throws -> Authenticator? {
    guard id != Authenticator.pinIdentifier else { return nil }
    guard let server = found as? any UserAuthenticators else {
      if let id { throw unknown(id, of: account, known: []) }
      return nil
    }
    // Without the list, the PIN is the only authenticator that could be used.
    if id == nil, !server.hasPreference(account.id) { return nil }
    let all = try await server.authenticators(of: account.id)
    if id == nil, all.preferred?.identifier == Authenticator.pinIdentifier, server.hasPreference(account.id) {
      throw CommandError(
        .refused,
        "the token server does not list the preferred authenticator of \(account.id) now; log in with "
          + "`--authenticator pin`", number: 10006)
    }
    guard let id = id ?? all.preferred?.identifier, id != Authenticator.pinIdentifier else { return nil }
    let authenticator = try known(id, in: all, of: account)
    try requireRegistered(authenticator, of: account)
    guard authenticator.isSupported, authenticator.kind == .custom else {
      throw CommandError(
        .refused, "this token cannot use \(id) now; log in with `--authenticator pin`", number: 10006)
    }
    return authenticator
  }

  /// How often one login asks for a code. A server that refuses every code would otherwise collect them.
  private static let loginAttempts = 3

  /// Prompts for the code of a custom authenticator until it is accepted, the user cancels, the authenticator is no
  /// longer registered, or `loginAttempts` codes were refused.
  func logIn(
    _ account: AccountRecord, at server: any UserAuthenticators, with authenticator: Authenticator,
    on panel: any Panel, _ progress: Progress
  ) async throws -> UserSession {
    let dialog = PanelDialog(panel, in: environment)
    var attempts = 0
    while true {
      attempts += 1
      // Not the server's name of it: that could ask for the PIN.
      progress("type the code of \(authenticator.identifier) for \(account.id), not the PIN, then Enter")
      let code = try await dialog.code()
      await dialog.show(.talkingToServer)
      do {
        let session = try await server.logIn(account.id, with: authenticator.identifier, code: code)
        try pins.record(.loggedIn, account.id, "with \(authenticator.identifier)")
        return session
      } catch TokenServerError.authenticatorFailed(let failure) {
        try pins.record(.authenticatorFailed, account.id, "\(authenticator.identifier): \(failure)")
        await dialog.show(.noSuchChoice)
        guard attempts < Self.loginAttempts, !failure.isRevoked,
          failure.info.map({ (4000..<5000).contains($0.status) }) == true
        else {
          throw TokenServerError.authenticatorFailed(failure)
        }
      }
    }
  }
}

// MARK: Checks

extension AccountService {
  private func authenticators(
    of account: AccountRecord, at found: any TokenServerClient
  ) async throws -> (server: any UserAuthenticators, all: [Authenticator]) {
    let server = try authenticators(at: found, of: account)
    return (server, try await server.authenticators(of: account.id))
  }

  private func authenticators(
    at found: any TokenServerClient, of account: AccountRecord
  ) throws -> any UserAuthenticators {
    guard let server = found as? any UserAuthenticators else {
      throw CommandError(.usage, "\(account.id) has no authenticators: its server has no sessions")
    }
    return server
  }

  private func known(_ id: String, in all: [Authenticator], of account: AccountRecord) throws -> Authenticator {
    guard let authenticator = all[id] else { throw unknown(id, of: account, known: all) }
    return authenticator
  }

  private func unknown(_ id: String, of account: AccountRecord, known: [Authenticator]) -> CommandError {
    let names = known.map(\.identifier).joined(separator: ", ")
    return CommandError(
      .refused,
      "\(account.id) has no authenticator \"\(id.prefix(64))\"\(names.isEmpty ? "" : "; there are: \(names)")",
      number: 9015)
  }

  private func requireRegistered(_ authenticator: Authenticator, of account: AccountRecord) throws {
    guard authenticator.isRegistered else {
      throw CommandError(
        .refused,
        "\(authenticator.identifier) is not registered: `approval-token authenticator register \(account.id) "
          + "\(authenticator.identifier)`", number: 10007)
    }
  }

  /// The session of the account; logs in with the PIN if there is none.
  private func userSession(
    of account: AccountRecord, at server: any UserAuthenticators, _ progress: @escaping Progress
  ) async throws -> UserSession {
    if let session = service.session, session.account == account.id { return session }
    guard hasKeypad else {
      throw CommandError(
        .refused, "\(account.id) is not logged in, and this board has no keypad to type the PIN on", number: 9010)
    }
    _ = try await logOut()
    let session = try await logInWithPIN(account, at: server, progress)
    service.set(session)
    return session
  }

  /// Ends the session here if the server no longer knows it.
  private func sessionEnded(by fault: TokenServerError, _ account: AccountID) -> any Error {
    guard case .notAuthenticated = fault else { return fault }
    service.set(nil)
    try? pins.record(.loggedOut, account, "the token server no longer knows the session")
    return CommandError(.refused, "\(account) is not logged in any more; repeat the command", number: 9010)
  }
}

extension AuthenticatorsResponse {
  fileprivate init(_ account: AccountRecord, _ all: [Authenticator]) {
    self.init(
      account: account.id.text,
      authenticators: all.map { authenticator in
        Entry(
          identifier: authenticator.identifier, name: authenticator.name, kind: authenticator.kind.rawValue,
          isRegistered: authenticator.isRegistered, isPreferred: authenticator.isPreferred,
          isSupported: authenticator.isSupported)
      })
  }
}
