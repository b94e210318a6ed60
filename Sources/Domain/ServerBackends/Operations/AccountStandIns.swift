// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// Registers what stands for the biometric checks of an account's server. The account's PIN, which this token verifies,
/// proves the user; the server is not asked.
package struct AccountStandIns: Sendable {
  private let pins: AccountPINs
  private let account: AccountRecord
  private let standIns: StandIns

  /// - Returns: nil for a server without such checks.
  package init?(of account: AccountRecord, at server: any TokenServerClient, _ pins: AccountPINs) {
    guard let standIns = (server as? any BiometricChecks)?.standIns else { return nil }
    self.pins = pins
    self.account = account
    self.standIns = standIns
  }

  /// - Throws: `AuthenticatorError.noBiometricChecks`
  package func all() throws(AuthenticatorError) -> [Authenticator] { try standIns.all(of: account) }

  /// Registers an authenticator, after a hold of the button and its use, with the PIN.
  /// - Throws: `AuthenticatorError`, `PanelDialog.EntryError`, `StateStoreError`, `TokenServerError.pinsUsedUp`.
  package func register(_ id: String, on panel: any Panel, _ progress: @escaping AccountPINs.Progress) async throws {
    let all = try all()
    guard let authenticator = all[id] else {
      throw AuthenticatorError.unknown(id, account.id, known: all.map(\.identifier))
    }
    guard !authenticator.isRegistered else { throw AuthenticatorError.alreadyRegistered(id, account.id) }
    guard all.registered.count <= StandIn.most, let driver = standIns.driver(of: id) else {
      throw AuthenticatorError.notUsable(id)
    }
    guard let pin = account.pin else { throw AuthenticatorError.noPIN(account.id) }
    let dialog = PanelDialog(panel, in: pins.environment)
    report(.registration, .confirmation, id)
    progress("hold the button to register \(id) for \(account.id)")
    try await dialog.hold()
    let registration = try standIns.registration(of: id, for: account.id)
    report(.registration, driver.kind == .biometric ? .biometric : .custom, id)
    progress("use \(id) for \(account.id)")
    let data = try await dialog.data(from: driver, for: registration.call, progress)
    let standIn = try standIns.standIn(of: registration, data, as: driver.kind)
    progress("type the PIN of \(account.id) on the keypad, then Enter, to register \(id)")
    _ = try await pins.unlock(account.id, for: .registration, length: pin.length, on: panel, progress)
    try standIns.add(standIn, to: account.id)
    await dialog.show(.confirmed)
  }

  /// Deregisters an authenticator, after a hold of the button.
  /// - Throws: `AuthenticatorError`, `PanelDialog.EntryError`, `StateStoreError`.
  package func deregister(_ id: String, on panel: any Panel, _ progress: @escaping AccountPINs.Progress) async throws {
    guard id != Authenticator.pinIdentifier else { throw AuthenticatorError.pinStays(account.id) }
    guard try all()[id]?.isRegistered == true else { throw AuthenticatorError.notRegistered(id, account.id) }
    let dialog = PanelDialog(panel, in: pins.environment)
    report(.deregistration, .confirmation, id)
    progress("hold the button to deregister \(id) for \(account.id)")
    try await dialog.hold()
    try standIns.remove(id, of: account.id)
    await dialog.show(.confirmed)
  }

  private func report(_ purpose: AuthenticationStep.Purpose, _ kind: ChallengeSummary.Kind, _ id: String) {
    pins.report(.challenged(purpose, ChallengeSummary(kind), after: nil), account.id, authenticator: id)
  }
}
