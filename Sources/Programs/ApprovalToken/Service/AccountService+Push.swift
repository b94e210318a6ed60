// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import PINProtection
import PingAMAdapter
import PrivacyIDEAAdapter
import ReferenceProtocol
import Secrets
import Vault

/// Accounts whose PIN is verified by this token and not by the token server: privacyIDEA push tokens and PingAM push
/// mechanisms. The PIN is chosen, verified and changed here.
extension AccountService {
  func enrollPushToken(_ call: ControlCall, _ progress: @escaping Progress) async throws -> AccountResponse {
    var settings = push.enrollment
    settings.asksForPIN = call.asksPIN == true
    let enrollment = PushEnrollment(
      registry: vault, clock: clock, settings: settings, pinPrompter: pinPrompter, progress: progress,
      makeHTTPTransport: makeHTTPTransport)
    let account = try await enrollment.enroll(call.uri ?? "", name: call.account, trust: try trust(for: call))
    service.reload()
    return AccountResponse(account: account.id.text, server: account.server.text, profile: account.profile)
  }

  func enrollMechanism(_ call: ControlCall, _ progress: @escaping Progress) async throws -> AccountResponse {
    var settings = push.mechanism
    settings.codesWantPIN = call.asksPIN == true
    settings.deviceToken = call.mailbox
    let enrollment = PingAMEnrollment(
      registry: vault, clock: clock, settings: settings, pinPrompter: pinPrompter,
      isTamperedWith: { vault.isTamperedWith },
      otpSecretStore: OATHAccounts.secretStore(in: vault, clock: clock, guarding: { pinGuard($0) }),
      progress: {
        // The account is stored before AM receives the registration. Messages may arrive even if AM's answer is lost.
        service.followMailboxes()
        progress($0)
      }, makeHTTPTransport: makeHTTPTransport)
    defer { service.followMailboxes() }
    let account = try await enrollment.enroll(call.uri ?? "", name: call.account, trust: try trust(for: call))
    service.reload()
    return AccountResponse(account: account.id.text, server: account.server.text, profile: account.profile)
  }

  /// The trust settings for a call that connects to a server.
  /// - Parameter pins: the pins in the URI; nil for the pins in the call.
  func trust(for call: ControlCall, pins: [String]? = nil) throws -> ServerTrust {
    var trust = try vault.trust(pins: pins ?? call.pins ?? [], authorities: call.authorities ?? authorities)
    trust.dropsPins = call.dropsPins == true
    return trust
  }

  /// Prompts for a new PIN; nil on a board without a keypad.
  private var pinPrompter: PINPrompter? {
    guard capabilities.keypad else { return nil }
    return PINPrompter {
      try await newPIN(keeping: push.policy)
    } keep: { account, pin throws(StateStoreError) in
      // The keys that verify messages also sign answers, so they cannot be encrypted with a PIN-derived key. The PIN
      // protects only the approval.
      try vault.setPIN(
        of: account, to: pin, keys: SecretBytes(copying: Array(account.text.utf8)), limit: push.pinAttempts,
        parameters: keyDerivation, clock: clock)
    }
  }

  /// Changes the PIN of a push account. Asks for the present PIN first, so that a wrong PIN is found before the user
  /// chooses a new one.
  func changePushPIN(of account: AccountID, _ progress: @escaping Progress) async throws -> SessionResponse {
    let record = try vault.account(account)
    let isMechanism = service.server(of: record) is PingAMServerClient
    guard let length = try isMechanism ? PingAM.pinLength(of: record) : PrivacyIDEA.pinLength(of: record) else {
      guard let pinPrompter else {
        throw CommandError(.usage, "account \(account) has no PIN; a PIN requires a keypad, and this board has none")
      }
      return try await chooseFirstPIN(of: account, with: pinPrompter, progress) { digits, record in
        try isMechanism ? PingAM.with(pinLength: digits, record) : PrivacyIDEA.with(pinLength: digits, record)
      }
    }
    return try await changeOwnPIN(of: account, length: length, progress)
  }

  /// Changes a PIN that this token verifies.
  func changeOwnPIN(of account: AccountID, length: Int, _ progress: @escaping Progress) async throws -> SessionResponse
  {
    let server = try vault.account(account).server
    try await service.panelTasks.perform(at: server) { panel in
      let dialog = PanelDialog(panel, clock: clock)
      progress("type the present PIN of \(account) on the keypad, then Enter")
      let present = try await presentPIN(of: account, length: length, dialog, on: panel)
      progress("choose a PIN of \(length) digits: type it on the keypad, press Enter, then repeat")
      let chosen = try await dialog.newPIN(keeping: PushSettings.policy(digits: length))
      guard
        case .unlocked = try vault.changePIN(
          of: account, from: present, to: chosen, parameters: keyDerivation, clock: clock)
      else {
        throw CommandError(.unavailable, "another command changed the PIN meanwhile; this change was discarded")
      }
      await dialog.show(.confirmed)
    }
    return SessionResponse(account: account.text)
  }

  /// Sets the first PIN of an account. AM requires user verification only at login, and a user can choose a PIN even if
  /// no server requires one.
  /// - Parameter having: returns the account record with the given PIN length.
  private func chooseFirstPIN(
    of account: AccountID, with prompter: PINPrompter, _ progress: Progress,
    having: (Int, AccountRecord) throws -> AccountRecord
  ) async throws -> SessionResponse {
    progress("choose a PIN of \(push.policy.length) digits: type it on the keypad, press Enter, then repeat")
    let pin = try await prompter.choose()
    try prompter.store(account, pin)
    try vault.update(account) { try having(pin.count, $0) }
    service.reload()
    return SessionResponse(account: account.text)
  }

  private func presentPIN(
    of account: AccountID, length: Int, _ dialog: PanelDialog, on panel: any Panel
  ) async throws -> PIN {
    while true {
      let pin = try await dialog.currentPIN(length: length)
      await dialog.show(.talkingToServer)
      switch try await verificationResult(of: pin, account) {
      case .wrong(let counts):
        service.note(counts, of: account)
        await dialog.show(.pinWrong(remaining: counts.remaining))
      case .wiped:
        await showLoss(of: account, by: .pinsUsedUp, on: panel)
        service.reload()
        throw TokenServerError.pinsUsedUp
      case .right, .mustWait:
        service.noteRightPIN(of: account)
        return pin
      }
    }
  }

  /// Verifies the PIN, after waiting for the backoff that an earlier wrong PIN attempt started.
  private func verificationResult(of pin: PIN, _ account: AccountID) async throws -> PINVerificationResult {
    let verifier = VaultPINVerifier(vault: vault, clock: clock)
    while true {
      let verificationResult = try verifier.verify(pin, of: account)
      guard case .mustWait(let wait) = verificationResult else { return verificationResult }
      try await clock.sleep(until: clock.now + wait)
    }
  }
}
