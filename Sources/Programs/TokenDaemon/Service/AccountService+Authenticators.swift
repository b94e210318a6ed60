// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import ServerBackends

/// The authenticators of accounts, with what the user must do at the panel.
extension AccountService {
  func authenticators(_ name: String?) async throws -> AuthenticatorsResponse {
    let (account, server) = try find(name)
    if let standIns = standIns(of: account, at: server) { return AuthenticatorsResponse(account, try standIns.all()) }
    return AuthenticatorsResponse(account, try await authenticators(of: account, at: server).all())
  }

  /// Registers a custom authenticator, after a hold of the button.
  func registerAuthenticator(_ id: String, of name: String, _ progress: @escaping Progress) async throws
    -> AuthenticatorsResponse
  {
    let (account, server) = try find(name)
    if let standIns = standIns(of: account, at: server) {
      return try await reporting(.registration, of: account.id, with: id) {
        try await service.panelTasks.perform(at: account.server) { panel in
          try await standIns.register(id, on: panel, progress)
        }
        // The accounts can have been read again while this waited for the panel.
        service.reload()
        let step = AuthenticationStep(.succeeded(.registration, nil), of: account.id, authenticator: id)
        return (AuthenticatorsResponse(account, try standIns.all()), step)
      }
    }
    let authenticators = try authenticators(of: account, at: server)
    let info = try await reporting(.registration, of: account.id, with: id) {
      try await authenticators.requireRegistrable(id)
      let session = try await userSession(of: account, at: server, progress)
      let info = try await service.panelTasks.perform(at: account.server) { panel in
        try await authenticators.register(id, in: session, on: panel, progress)
      }
      return (info, AuthenticationStep(.succeeded(.registration, info), of: account.id, authenticator: id))
    }
    return AuthenticatorsResponse(account, try await authenticators.all(), info: info)
  }

  func deregisterAuthenticator(_ id: String, of name: String, _ progress: @escaping Progress) async throws
    -> AuthenticatorsResponse
  {
    let (account, server) = try find(name)
    if let standIns = standIns(of: account, at: server) {
      return try await reporting(.deregistration, of: account.id, with: id) {
        try await service.panelTasks.perform(at: account.server) { panel in
          try await standIns.deregister(id, on: panel, progress)
        }
        service.reload()
        // The server did not know it.
        let step = AuthenticationStep(.deregistered(isServerNotified: nil), of: account.id, authenticator: id)
        return (AuthenticatorsResponse(account, try standIns.all()), step)
      }
    }
    let authenticators = try authenticators(of: account, at: server)
    let (all, isNotified) = try await reporting(.deregistration, of: account.id, with: id) {
      let all = try await authenticators.requireDeregistrable(id)
      let session = try await userSession(of: account, at: server, orWith: id, progress)
      var data: AuthenticatorData?
      if authenticators.notifiesDriver(of: id) {
        data = try await service.panelTasks.perform(at: account.server) { panel in
          try await authenticators.endRegistration(of: id, on: panel, progress)
        }
      }
      let isNotified = try await authenticators.deregister(id, with: data, in: session)
      let step = AuthenticationStep(
        .deregistered(isServerNotified: isNotified), of: account.id, authenticator: id)
      return ((all, isNotified), step)
    }
    return AuthenticatorsResponse(
      account, isNotified ? try await authenticators.all() : all.filter { $0.identifier != id },
      serverNotified: isNotified)
  }

  func preferAuthenticator(_ id: String, of name: String) async throws -> AuthenticatorsResponse {
    let (account, server) = try find(name)
    let authenticators = try authenticators(of: account, at: server)
    try await authenticators.prefer(id)
    return AuthenticatorsResponse(account, try await authenticators.all())
  }

  func authenticators(
    of account: AccountRecord, at server: any TokenServerClient
  ) throws -> AccountAuthenticators {
    try AccountAuthenticators(of: account, at: server, pins)
  }

  /// Nil at a server with authenticators of its own, or without biometric checks.
  private func standIns(of account: AccountRecord, at server: any TokenServerClient) -> AccountStandIns? {
    AccountStandIns(of: account, at: server, pins)
  }

  /// The session of the account, if it is of the PIN; logs in with the PIN if there is none: a weaker authenticator
  /// must not replace a stronger one.
  /// - Parameter authenticator: an authenticator whose session is enough, too; nil for none.
  private func userSession(
    of account: AccountRecord, at server: any TokenServerClient, orWith authenticator: String? = nil,
    _ progress: @escaping Progress
  ) async throws -> UserSession {
    if let session = service.session, session.account == account.id,
      session.isOfPIN(of: account.id) || session.authenticator == authenticator
    {
      return session
    }
    guard hasKeypad else { throw AuthenticatorError.notLoggedIn(account.id) }
    _ = try await logOut()
    let pin = Authenticator.pinIdentifier
    return try await reporting(.login, of: account.id, with: pin) {
      let session = try await logInWithPIN(account, at: sessions(of: account, at: server), progress)
      service.set(session)
      return (session, AuthenticationStep(.succeeded(.login, nil), of: account.id, authenticator: pin))
    }
  }
}

extension AuthenticatorsResponse {
  fileprivate init(
    _ account: AccountRecord, _ all: [Authenticator], serverNotified: Bool? = nil, info: AuthenticatorInfo? = nil
  ) {
    self.init(
      account: account.id.text,
      authenticators: all.map { authenticator in
        Entry(
          identifier: authenticator.identifier, name: authenticator.name, kind: authenticator.kind.rawValue,
          isRegistered: authenticator.isRegistered, isPreferred: authenticator.isPreferred,
          isSupported: authenticator.isSupported)
      }, serverNotified: serverNotified, info: info.map { ScriptInfo($0) })
  }
}
