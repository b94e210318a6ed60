// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Secrets

/// Logins with an authenticator other than the PIN.
extension AccountAuthenticators {
  /// How often one login asks for an authenticator's data. A server that refuses every code would otherwise collect
  /// them.
  static let loginAttempts = 3
  /// The pause before a driver is asked again that failed.
  static let driverPause = Duration.seconds(1)

  /// Asks for the data of an authenticator until it is accepted or the user cancels. Asks for the PIN instead if the
  /// user types it, or the driver wants that; and after a refusal for good, or `loginAttempts` failures. Without a
  /// keypad, the last failure ends the login.
  /// - Returns: the session, and the identifier of what proved the user.
  /// - Throws: `PanelDialog.EntryError`, `TokenServerError`, `StateStoreError`.
  package func logIn(
    with authenticator: Authenticator, on panel: any Panel, _ progress: @escaping AccountPINs.Progress
  ) async throws -> (session: UserSession, used: String) {
    let (id, dialog) = (authenticator.identifier, PanelDialog(panel, in: environment))
    let pinLength = if hasKeypad { try? await server.pinLength(of: account.id) } else { Int?.none }
    var (attempts, failure, typed) = (0, AuthenticationStep.Failure?.none, PIN?.none)
    asking: while true {
      attempts += 1
      do {
        switch try await logIn(with: authenticator, orPINOf: pinLength, after: failure, dialog, progress) {
        case .session(let session): return (session, id)
        case .pin(let pin):
          (typed, failure) = (pin, nil)
          break asking
        }
      } catch {
        guard let found = LoginFailure(error) else { throw error }
        // First: the registration ends also if the storage fails.
        if let why = found.revocation { server.revoke(id, of: account.id, because: why) }
        try pins.record(.authenticatorFailed, account.id, "\(id): \(found.detail)")
        await dialog.show(.noSuchChoice)
        failure = found.failure
        let isOver = attempts == Self.loginAttempts || !found.mayBeRepeated
        guard !isOver || pinLength != nil else { throw error }
        progress("\(id): \(found.failure.reason); \(isOver ? "the PIN is wanted instead" : "try again")")
        guard !isOver else { break asking }
        if found.isOfDriver { try await environment.sleep(for: Self.driverPause) }
      }
    }
    guard let pinLength else { throw PanelDialog.EntryError.pinInstead }
    let session = try await pins.logIn(
      account, at: server, length: pinLength, typed: typed, after: failure, on: panel, progress)
    return (session, Authenticator.pinIdentifier)
  }

  private enum LoginStep {
    case session(UserSession)
    /// The PIN is used instead; nil if it is still to be typed.
    case pin(PIN?)
  }

  /// One attempt.
  private func logIn(
    with authenticator: Authenticator, orPINOf pinLength: Int?, after failure: AuthenticationStep.Failure?,
    _ dialog: PanelDialog, _ progress: @escaping AccountPINs.Progress
  ) async throws -> LoginStep {
    let id = authenticator.identifier
    var summary = summary(of: authenticator.kind)
    summary.takesPIN = pinLength != nil
    report(.challenged(.login, summary, after: failure), id)
    let use = try server.use(id, of: account.id, for: .authenticate)
    let proof: PanelDialog.Proof
    do {
      proof = try await self.proof(
        for: use.call, from: driver(of: authenticator), orPINOf: pinLength, dialog, progress)
    } catch PanelDialog.EntryError.pinInstead {
      progress("\(id) asks for the PIN instead")
      return .pin(nil)
    }
    switch proof {
    case .pin(let pin): return .pin(pin)
    case .data(let data):
      await dialog.show(.talkingToServer)
      let session = try await server.logIn(with: use, data: data)
      try pins.record(.loggedIn, account.id, "with \(id)")
      await dialog.show(.confirmed)
      return .session(session)
    }
  }
}

/// Why an attempt to log in did not count, although the login goes on.
private struct LoginFailure {
  let failure: AuthenticationStep.Failure
  /// For the audit chain.
  let detail: String
  let mayBeRepeated: Bool
  /// Whether the driver failed, not the data.
  var isOfDriver = false
  /// Why the registration must end here and at the server; nil if it stays, or the server has ended it.
  var revocation: String?

  /// Nil for an error that ends the login.
  init?(_ error: any Error) {
    switch error {
    case TokenServerError.authenticatorFailed(let refusal):
      failure = .init(.authenticatorFailed(refusal))
      (detail, mayBeRepeated) = ("\(refusal)", refusal.mayBeRepeated)
    case PanelDialog.EntryError.authenticatorFailed(let why):
      (failure, detail, mayBeRepeated, isOfDriver) = (.init(number: nil, reason: why), why, true, true)
    case PanelDialog.EntryError.authenticatorExhausted(let why, let revokes):
      (failure, detail, mayBeRepeated) = (.init(number: nil, reason: why), why, false)
      revocation = revokes ? why : nil
    default: return nil
    }
  }
}

extension AuthenticatorFailure {
  /// Whether the server refused the data, and not for good.
  fileprivate var mayBeRepeated: Bool { !isRevoked && info.map { (4000..<5000).contains($0.status) } == true }
}
