// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import PINProtection
import Secrets
import ServerBackends
import Vault

/// Accounts whose PIN is verified by this token and not by the token server. The PIN is chosen, verified and changed
/// here.
extension AccountService {
  /// Changes a PIN that this token verifies.
  func changeOwnPIN(of account: AccountID, length: Int, _ progress: @escaping Progress) async throws -> SessionResponse
  {
    let server = try vault.account(account).server
    try await service.panelTasks.perform(at: server) { panel in
      let dialog = PanelDialog(panel, in: environment)
      progress("type the present PIN of \(account) on the keypad, then Enter")
      let present = try await unlock(account, length: length, dialog, on: panel).pin
      progress("choose a PIN of \(length) digits: type it on the keypad, press Enter, then repeat")
      let chosen = try await dialog.newPIN(keeping: BackendSettings.pinPolicy(digits: length))
      guard
        case .unlocked = try vault.changePIN(
          of: account, from: present, to: chosen, parameters: keyDerivation, in: environment)
      else {
        throw CommandError(.unavailable, "another command changed the PIN meanwhile; this change was discarded")
      }
      await dialog.show(.confirmed)
    }
    return SessionResponse(account: account.text)
  }

  /// Sets the first PIN of an account. A server may require user verification only at login, and a user can choose a
  /// PIN even if no server requires one.
  func chooseFirstPIN(
    of account: AccountID, _ progress: Progress
  ) async throws -> SessionResponse {
    guard hasKeypad else {
      throw CommandError(.usage, "account \(account) has no PIN; a PIN requires a keypad, and this board has none")
    }
    let prompter = backends.context.pinPrompter { try await newPIN(keeping: $0) }
    progress("choose a PIN of \(settings.pinPolicy.length) digits: type it on the keypad, press Enter, then repeat")
    try prompter.store(account, try await prompter.choose())
    service.reload()
    return SessionResponse(account: account.text)
  }

  /// Prompts until the PIN is right.
  /// - Returns: the PIN, and what is encrypted with a key derived from it.
  func unlock(
    _ account: AccountID, length: Int, _ dialog: PanelDialog, on panel: any Panel
  ) async throws -> (pin: PIN, keys: SecretBytes) {
    while true {
      let pin = try await dialog.currentPIN(length: length)
      await dialog.show(.talkingToServer)
      switch try await verdict(on: pin, account) {
      case .unlocked(let keys):
        service.noteRightPIN(of: account)
        return (pin, keys)
      case .wrong(let counts, _):
        service.note(counts, of: account)
        await dialog.show(.pinWrong(remaining: counts.remaining))
      case .wiped:
        await showLoss(of: account, by: .pinsUsedUp, on: panel)
        service.reload()
        throw TokenServerError.pinsUsedUp
      case .mustWait: preconditionFailure("the wait was sat out")
      }
    }
  }

  /// Verifies the PIN, after waiting for the backoff that an earlier wrong PIN attempt started.
  private func verdict(on pin: PIN, _ account: AccountID) async throws -> PINUnlockResult {
    while true {
      let verdict = try vault.unlock(account, with: pin, in: environment)
      guard case .mustWait(let wait) = verdict else { return verdict }
      try await environment.sleep(for: wait)
    }
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
