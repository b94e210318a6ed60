// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import PINProtection
package import Secrets

/// PINs that this token verifies. They are chosen, verified and changed here.
extension AccountPINs {
  /// Changes a PIN that this token verifies.
  /// - Throws: `PanelDialog.EntryError`, `StateStoreError`, `TokenServerError.pinsUsedUp`,
  ///   `AccountError.pinChangedMeanwhile`.
  package func change(
    of account: AccountID, length: Int, on panel: any Panel, _ progress: Progress
  ) async throws {
    let dialog = PanelDialog(panel, in: environment)
    progress("type the current PIN of \(account) on the keypad, then Enter")
    let present = try await unlock(account, for: .pinChange, length: length, on: panel, progress).pin
    progress(Self.askForNewPIN(length))
    let chosen = try await dialog.newPIN(keeping: BackendSettings.pinPolicy(digits: length))
    guard
      case .unlocked = try store.changePIN(
        of: account, from: present, to: chosen, parameters: context.keyDerivation, in: environment)
    else { throw AccountError.pinChangedMeanwhile }
    await dialog.show(.confirmed)
  }

  /// Sets the first PIN of an account. A server may require user verification only at login, and a user can choose a
  /// PIN even if no server requires one.
  /// - Parameter choose: asks the user at the panel until a PIN satisfies the policy.
  /// - Throws: `AccountError.noKeypad`, `AccountError.pinChangedMeanwhile`, `StateStoreError`, and what `choose`
  ///   throws.
  package func chooseFirst(
    of account: AccountID, _ progress: Progress, asking choose: @escaping @Sendable (PINPolicy) async throws -> PIN
  ) async throws {
    guard context.board?.hasKeypad == true else { throw AccountError.noKeypad(account) }
    let prompter = context.pinPrompter(choosing: choose)
    progress(Self.askForNewPIN(context.settings.pinPolicy.length))
    let chosen = try await prompter.choose()
    // Another command can have set one while this one waited for the panel: that is changed only with the PIN itself.
    guard try store.account(account).pin == nil else { throw AccountError.pinChangedMeanwhile }
    try prompter.store(account, chosen)
    users.reload()
  }

  /// Prompts until the PIN is right.
  /// - Returns: the PIN, and what is encrypted with a key derived from it.
  /// - Throws: `PanelDialog.EntryError`, `StateStoreError`, `TokenServerError.pinsUsedUp`.
  package func unlock(
    _ account: AccountID, for purpose: AuthenticationStep.Purpose, length: Int, on panel: any Panel,
    _ progress: Progress
  ) async throws -> (pin: PIN, keys: SecretBytes) {
    let dialog = PanelDialog(panel, in: environment)
    var failure: AuthenticationStep.Failure?
    while true {
      reportPINChallenge(of: account, for: purpose, try store.failureCounts(of: account, in: environment), failure)
      let pin = try await dialog.currentPIN(length: length)
      await dialog.show(.talkingToServer)
      switch try await verify(pin, of: account) {
      case .unlocked(let keys):
        try noteRightPIN(of: account)
        return (pin, keys)
      case .wrong(let counts, _):
        users.note(counts, of: account)
        failure = .init(.pinIncorrect(counts))
        progress(Self.askAgain(after: counts))
        await dialog.show(.pinWrong(remaining: counts.remaining))
      case .wiped:
        report(.mustEnroll(.init(.pinsUsedUp)), account)
        await showLoss(of: account, by: .pinsUsedUp, on: panel)
        users.reload()
        throw TokenServerError.pinsUsedUp
      case .mustWait: preconditionFailure("the wait is over")
      }
    }
  }

  /// The user was proven: fingerprints that stand in for the account are usable from now on. No decision follows whose
  /// change would clear the count.
  private func noteRightPIN(of id: AccountID) throws {
    try store.flush()
    users.noteRightPIN(of: id)
    let account = try store.account(id)
    context.unlockedTokens.unlock(account.standIns, of: account.profile, at: account.server, now: environment.now)
  }

  /// Verifies the PIN, after waiting for the backoff that an earlier wrong PIN attempt started.
  private func verify(_ pin: PIN, of account: AccountID) async throws -> PINUnlockResult {
    while true {
      let result = try store.unlock(account, with: pin, in: environment)
      guard case .mustWait(let wait) = result else { return result }
      try await environment.sleep(for: wait)
    }
  }
}

extension PanelDialog {
  /// Prompts until a PIN satisfies the policy, then shows that the PIN is being stored or sent.
  package func newPIN(keeping policy: PINPolicy) async throws -> PIN {
    let pin = try await newPIN(length: policy.length) { policy.violation(by: $0)?.ordinal }
    await show(.talkingToServer)
    return pin
  }
}
