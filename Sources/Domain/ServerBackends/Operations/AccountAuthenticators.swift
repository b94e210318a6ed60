// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Secrets

/// The authenticators of one account. The PIN is one of them; it is always there for an account that has one.
package struct AccountAuthenticators: Sendable {
  /// How often one login asks for a code. A server that refuses every code would otherwise collect them.
  static let loginAttempts = 3

  let pins: AccountPINs
  let account: AccountRecord
  let server: any UserAuthenticators

  /// - Throws: `AuthenticatorError.noneAtServer`
  package init(of account: AccountRecord, at server: any TokenServerClient, _ pins: AccountPINs) throws {
    guard let server = server as? any UserAuthenticators else { throw AuthenticatorError.noneAtServer(account.id) }
    self.pins = pins
    self.account = account
    self.server = server
  }

  private var environment: TokenEnvironment { pins.environment }

  /// The list of the server.
  package func all() async throws(TokenServerError) -> [Authenticator] {
    try await server.authenticators(of: account.id)
  }

  /// The authenticator of a login.
  /// - Parameter id: that the user named; nil for the preferred one. One that is unknown or not registered is an error,
  ///   never replaced by the PIN.
  /// - Returns: nil for the PIN.
  /// - Throws: `AuthenticatorError`, `TokenServerError`.
  package func ofLogin(_ id: String?) async throws -> Authenticator? {
    guard id != Authenticator.pinIdentifier else { return nil }
    // Without the list, the PIN is the only authenticator that could be used.
    if id == nil, !server.hasPreference(account.id) { return nil }
    let all = try await all()
    if id == nil, all.preferred?.identifier == Authenticator.pinIdentifier, server.hasPreference(account.id) {
      throw AuthenticatorError.preferredNotListed(account.id)
    }
    guard let id = id ?? all.preferred?.identifier, id != Authenticator.pinIdentifier else { return nil }
    let authenticator = try registered(id, in: all)
    guard authenticator.canTakeCode else { throw AuthenticatorError.notUsableNow(id) }
    return authenticator
  }

  /// Prompts for the code of a custom authenticator until it is accepted, the user cancels, the authenticator is no
  /// longer registered, or `loginAttempts` codes were refused.
  /// - Throws: `PanelDialog.EntryError`, `TokenServerError`, `StateStoreError`.
  package func logIn(
    with authenticator: Authenticator, on panel: any Panel, _ progress: AccountPINs.Progress
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
        await dialog.show(.confirmed)
        return session
      } catch TokenServerError.authenticatorFailed(let failure) {
        try pins.record(.authenticatorFailed, account.id, "\(authenticator.identifier): \(failure)")
        await dialog.show(.noSuchChoice)
        guard attempts < Self.loginAttempts, failure.mayBeRepeated else {
          throw TokenServerError.authenticatorFailed(failure)
        }
      }
    }
  }

  /// Checks that an authenticator can be registered on this token.
  /// - Throws: `AuthenticatorError`, `TokenServerError`.
  package func requireRegistrable(_ id: String) async throws {
    let authenticator = try known(id, in: try await all())
    guard !authenticator.isRegistered else { throw AuthenticatorError.alreadyRegistered(id, account.id) }
    guard authenticator.canTakeCode else { throw AuthenticatorError.notUsable(id) }
  }

  /// Registers a custom authenticator, after a hold of the button.
  /// - Throws: as `logIn`; `AuthenticatorError.sessionEnded`.
  package func register(
    _ id: String, in session: UserSession, on panel: any Panel, _ progress: AccountPINs.Progress
  ) async throws {
    let dialog = PanelDialog(panel, in: environment)
    progress("hold the button to register \(id) for \(account.id)")
    try await dialog.hold()
    progress("type the code of \(id), not the PIN, on the keypad, then Enter")
    let code = try await dialog.code()
    await dialog.show(.talkingToServer)
    do { try await server.register(id, with: code, in: session) } catch {
      if case .authenticatorFailed = error { await dialog.show(.noSuchChoice) }
      throw sessionEnded(by: error)
    }
    await dialog.show(.confirmed)
  }

  /// Checks that an authenticator can be deregistered.
  /// - Returns: all, from what this token has stored if the server is not reachable: without its server, an
  ///   authenticator is removed only here.
  /// - Throws: `AuthenticatorError`, `TokenServerError`.
  package func requireDeregistrable(_ id: String) async throws -> [Authenticator] {
    guard id != Authenticator.pinIdentifier else { throw AuthenticatorError.pinStays(account.id) }
    let all: [Authenticator]
    do { all = try await self.all() } catch {
      guard error.effect == .retry, let stored = try? server.storedAuthenticators(of: account.id) else { throw error }
      all = stored
    }
    _ = try registered(id, in: all)
    return all
  }

  /// - Returns: whether the server was notified; if not, the authenticator is removed only here.
  /// - Throws: `TokenServerError`, `AuthenticatorError.sessionEnded`.
  package func deregister(_ id: String, in session: UserSession) async throws -> Bool {
    do { return try await server.deregister(id, in: session) } catch { throw sessionEnded(by: error) }
  }

  /// Chooses what a login uses that names no authenticator.
  /// - Throws: `AuthenticatorError`, `TokenServerError`, `StateStoreError`.
  package func prefer(_ id: String) async throws {
    _ = try registered(id, in: try await all())
    try server.prefer(id, of: account.id)
  }

  // MARK: Checks

  private func known(_ id: String, in all: [Authenticator]) throws(AuthenticatorError) -> Authenticator {
    guard let authenticator = all[id] else { throw .unknown(id, account.id, known: all.map(\.identifier)) }
    return authenticator
  }

  private func registered(_ id: String, in all: [Authenticator]) throws(AuthenticatorError) -> Authenticator {
    let authenticator = try known(id, in: all)
    guard authenticator.isRegistered else { throw .notRegistered(id, account.id) }
    return authenticator
  }

  /// Ends the session here if the server no longer knows it.
  private func sessionEnded(by fault: TokenServerError) -> any Error {
    guard case .notAuthenticated = fault else { return fault }
    pins.users.set(nil)
    do { try pins.record(.loggedOut, account.id, "the token server no longer knows the session") } catch {
      return error
    }
    return AuthenticatorError.sessionEnded(account.id)
  }
}

extension Authenticator {
  /// Whether this token can use it now: its data is a code, typed on the keypad.
  fileprivate var canTakeCode: Bool { isSupported && kind == .custom }
}

extension AuthenticatorFailure {
  /// Whether the server's script refused the code, and not for good.
  fileprivate var mayBeRepeated: Bool { !isRevoked && info.map { (4000..<5000).contains($0.status) } == true }
}
