// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Secrets

/// The authenticators of one account. The PIN is one of them; it is always there for an account that has one.
package struct AccountAuthenticators: Sendable {
  let pins: AccountPINs
  let account: AccountRecord
  package let server: any UserAuthenticators

  /// - Throws: `AuthenticatorError.noneAtServer`
  package init(of account: AccountRecord, at server: any TokenServerClient, _ pins: AccountPINs) throws {
    guard let server = server as? any UserAuthenticators else { throw AuthenticatorError.noneAtServer(account.id) }
    self.pins = pins
    self.account = account
    self.server = server
  }

  var environment: TokenEnvironment { pins.environment }
  private var drivers: AuthenticatorDrivers { pins.context.drivers }
  /// Whether a PIN can be typed on this board.
  var hasKeypad: Bool { pins.context.board?.hasKeypad == true }

  /// The list of the server.
  package func all() async throws(TokenServerError) -> [Authenticator] {
    try await server.authenticators(of: account.id)
  }

  /// The authenticator of a login.
  /// - Parameter id: that the user named; nil for the preferred one. One that the user named and that is unknown, not
  ///   registered or not usable now is an error, never replaced by the PIN.
  /// - Returns: nil for the PIN; also for a preferred one that is not usable now, which `progress` is told.
  /// - Throws: `AuthenticatorError`, `TokenServerError`.
  package func ofLogin(_ id: String?, _ progress: AccountPINs.Progress) async throws -> Authenticator? {
    guard id != Authenticator.pinIdentifier else { return nil }
    guard let id else { return try await preferredOfLogin(progress) }
    let authenticator = try registered(id, in: try await all())
    guard driver(of: authenticator) != nil else { throw AuthenticatorError.notUsableNow(id) }
    return authenticator
  }

  private func preferredOfLogin(_ progress: AccountPINs.Progress) async throws -> Authenticator? {
    // Without the list, the PIN is the only authenticator that could be used.
    guard server.hasPreference(account.id) else { return nil }
    guard let preferred = try await all().preferred, preferred.identifier != Authenticator.pinIdentifier else {
      guard hasKeypad else { throw AuthenticatorError.preferredNotListed(account.id) }
      progress("the token server does not list the preferred authenticator now; the PIN is wanted instead")
      return nil
    }
    guard driver(of: preferred) == nil else { return preferred }
    guard hasKeypad else { throw AuthenticatorError.notUsableNow(preferred.identifier) }
    progress("\(preferred.identifier) cannot be used now; the PIN is wanted instead")
    return nil
  }

  /// Checks that an authenticator can be registered on this token.
  /// - Throws: `AuthenticatorError`, `TokenServerError`.
  package func requireRegistrable(_ id: String) async throws {
    let authenticator = try known(id, in: try await all())
    guard !authenticator.isRegistered else { throw AuthenticatorError.alreadyRegistered(id, account.id) }
    guard driver(of: authenticator) != nil else { throw AuthenticatorError.notUsable(id) }
  }

  /// Registers an authenticator, after a hold of the button; a biometric one with the PIN.
  /// - Returns: the result of the server's script.
  /// - Throws: as `logIn`; `AuthenticatorError.sessionEnded`.
  package func register(
    _ id: String, in session: UserSession, on panel: any Panel, _ progress: @escaping AccountPINs.Progress
  ) async throws -> AuthenticatorInfo? {
    let dialog = PanelDialog(panel, in: environment)
    report(.challenged(.registration, ChallengeSummary(.confirmation), after: nil), id)
    progress("hold the button to register \(id) for \(account.id)")
    try await dialog.hold()
    let use = try server.use(id, of: account.id, for: .register)
    let driver = drivers.usable(id, as: .custom) ?? drivers.usable(id, as: .biometric)
    report(.challenged(.registration, summary(of: driver?.kind), after: nil), id)
    let data = try await data(for: use.call, from: driver, dialog, progress)
    if driver?.kind == .biometric {
      try await register(id, with: data, in: session, on: panel, progress)
      return nil
    }
    await dialog.show(.talkingToServer)
    do {
      let info = try await server.register(use, with: data, in: session)
      await dialog.show(.confirmed)
      return info
    } catch {
      if case .authenticatorFailed = error { await dialog.show(.noSuchChoice) }
      throw sessionEnded(by: error)
    }
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

  /// - Parameter data: the driver's, for the server's script; nil for none.
  /// - Returns: whether the server was notified; if not, the authenticator is removed only here.
  /// - Throws: `TokenServerError`, `AuthenticatorError.sessionEnded`.
  package func deregister(_ id: String, with data: AuthenticatorData?, in session: UserSession) async throws -> Bool {
    do { return try await server.deregister(id, with: data, in: session) } catch { throw sessionEnded(by: error) }
  }

  /// Whether a driver outside of the panel must be asked before a deregistration.
  package func notifiesDriver(of id: String) -> Bool {
    drivers.usable(id, as: .custom).map { $0.input != .keypadCode } ?? false
  }

  /// Notifies the driver of a deregistration, unless it cancels.
  /// - Returns: its data for the server; nil if it has none, also if it fails.
  /// - Throws: `PanelDialog.EntryError`, if the driver or the user cancels.
  package func endRegistration(
    of id: String, on panel: any Panel, _ progress: @escaping AccountPINs.Progress
  ) async throws -> AuthenticatorData? {
    guard let driver = drivers.usable(id, as: .custom) else { return nil }
    let use = try server.use(id, of: account.id, for: .deregister)
    report(.challenged(.deregistration, ChallengeSummary(.custom), after: nil), id)
    do { return try await PanelDialog(panel, in: environment).data(from: driver, for: use.call, progress) } catch {
      switch error {
      case PanelDialog.EntryError.authenticatorFailed(let why):
        progress("\(id) is deregistered without its driver: \(why)")
        return nil
      case PanelDialog.EntryError.pinInstead, PanelDialog.EntryError.timedOut: return nil
      default: throw error
      }
    }
  }

  /// Chooses what a login uses that names no authenticator.
  /// - Throws: `AuthenticatorError`, `TokenServerError`, `StateStoreError`.
  package func prefer(_ id: String) async throws {
    _ = try registered(id, in: try await all())
    try server.prefer(id, of: account.id)
  }

  // MARK: Drivers

  /// The driver, if it can be used now.
  func driver(of authenticator: Authenticator) -> (any AuthenticatorDriver)? {
    guard authenticator.isSupported else { return nil }
    return drivers.usable(authenticator.identifier, as: authenticator.kind)
  }

  /// Lets the user operate the authenticator for a registration.
  private func data(
    for call: DriverCall, from driver: (any AuthenticatorDriver)?, _ dialog: PanelDialog,
    _ progress: @escaping AccountPINs.Progress
  ) async throws -> AuthenticatorData {
    guard case .data(let data) = try await proof(for: call, from: driver, orPINOf: nil, dialog, progress) else {
      throw PanelDialog.EntryError.pinInstead
    }
    return data
  }

  /// Lets the user operate the authenticator. A registration is preceded by a hold of the button, and a login where the
  /// authenticator requires it.
  /// - Parameter pinLength: the number of digits of the PIN; nil if it cannot be used instead.
  func proof(
    for call: DriverCall, from driver: (any AuthenticatorDriver)?, orPINOf pinLength: Int?, _ dialog: PanelDialog,
    _ progress: @escaping AccountPINs.Progress
  ) async throws -> PanelDialog.Proof {
    // Not the server's name of it: that could ask for the PIN.
    let id = call.authenticator
    guard let driver else { throw AuthenticatorError.notUsableNow(id) }
    switch driver.input {
    case .keypadCode:
      let choice = pinLength == nil ? "" : "; Enter alone for the PIN"
      progress("type the code of \(id) for \(account.id), not the PIN, then Enter\(choice)")
      return try await dialog.code(orPIN: pinLength != nil)
    case .external(let hold):
      let choice = pinLength == nil ? "" : ", or type the PIN"
      if hold, call.step == .authenticate {
        progress("hold the button to use \(id) for \(account.id)\(choice)")
        if let pin = try await dialog.hold(orPINOf: pinLength) { return .pin(pin) }
      }
      progress("use \(id) for \(account.id)\(choice)")
      return try await dialog.proof(from: driver, for: call, orPINOf: pinLength, progress)
    }
  }

  func summary(of kind: Authenticator.Kind?) -> ChallengeSummary {
    ChallengeSummary(kind == .biometric ? .biometric : .custom)
  }

  func report(_ event: AuthenticationStep.Event, _ id: String) {
    pins.report(event, account.id, authenticator: id)
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
  func sessionEnded(by fault: TokenServerError) -> any Error {
    guard case .notAuthenticated = fault else { return fault }
    do { try pins.endLostSession(of: account.id) } catch { return error }
    return AuthenticatorError.sessionEnded(account.id)
  }
}
