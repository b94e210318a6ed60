// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import ServerBackends

/// Stores the one-time password credential and the PIN before the account is registered at AM.
extension PingAMEnrollment {
  /// Stores the credential before registration, because AM registers both at once: if AM's response is lost, the token
  /// must already have the credential.
  func keepOtherHalf(
    _ oath: OATHCredential?, of draft: inout Draft, _ policies: AccountPolicies
  ) async throws {
    guard let oath else {
      // A credential of an earlier QR code is useless: its mechanism can no longer become active.
      try otpSecretStore.drop(draft.account.id)
      return try await choosePIN(&draft, policies)
    }
    guard draft.mechanism.metadata.codesWantPIN == true else {
      try await choosePIN(&draft, policies)
      return try otpSecretStore.store(oath, nil, draft.account, draft.account)
    }
    // If the PIN length is set, an earlier run has stored the credential and the PIN in one transaction.
    guard draft.mechanism.metadata.pinLength == nil else { return }
    guard let pinPrompter else { throw Self.noKeypad }
    let pin = try await choose(with: pinPrompter)
    let known = draft.account
    draft.mechanism.metadata.pinLength = pin.count
    draft.account = draft.mechanism.stored(in: draft.account)
    try otpSecretStore.store(oath, pin, known, draft.account)
  }

  static let noKeypad = PanelDialog.EntryError.panelUnavailable(
    "the one-time passwords are to require a PIN: enroll while `approval-token serve` runs on a board with a keypad")

  private func choose(with prompter: PINPrompter) async throws -> PIN {
    progress("choose a PIN: type it on the keypad, press Enter, and repeat it; the QR code expires in about a minute")
    return try await prompter.choose()
  }

  /// Lets the user choose a PIN that only push requests need, if a policy or the settings require one.
  private func choosePIN(_ draft: inout Draft, _ policies: AccountPolicies) async throws {
    guard policies.wantsPIN || settings.asksForPIN, draft.mechanism.metadata.pinLength == nil, let pinPrompter else {
      return
    }
    let pin = try await choose(with: pinPrompter)
    try pinPrompter.store(draft.account.id, pin)
    let withPIN = try registry.update(draft.account.id) { account in
      var account = account
      account.pin = PINMetadata(.token, length: pin.count)
      return account
    }
    guard let account = withPIN else { throw Self.isGone(draft.account.id) }
    draft.mechanism.metadata.pinLength = pin.count
    draft.account = account
  }
}
