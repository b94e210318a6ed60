import CurlCourier
import MobileAuth
import PINProtection
import PrivacyIDEAAdapter
import ReferenceProtocol
import Secrets
import Vault

/// Push tokens: their server only wants a PIN typed, so that it is chosen, judged and changed here.
extension AccountDesk {
  func enrolPushToken(_ call: ControlCall, _ progress: @escaping Progress) async throws -> AccountFacts {
    let desk = PushEnrolment.PINDesk {
      try await newPIN(keeping: push.policy)
    } keep: { account, pin throws(CustodyFault) in
      // Polls are signed with the same key as answers, so that no key can be under the PIN: it guards the act alone.
      try vault.setPIN(
        of: account, to: pin, keys: SecretBytes(copying: Array(account.text.utf8)), limit: push.pinAttempts,
        parameters: keyDerivation, clock: timekeeper)
    }
    let enrolment = PushEnrolment(
      registry: vault, timekeeper: timekeeper, settings: push.enrolment, pinDesk: capabilities.keypad ? desk : nil,
      progress: progress, makeCourier: { CurlCourier(trust: $0) })
    let trust = try vault.trust(pins: call.pins ?? [], authorities: call.authorities ?? authorities)
    let account = try await enrolment.enrol(call.uri ?? "", name: call.account, trust: trust)
    service.reload()
    return AccountFacts(account: account.id.text, server: account.server.text, profile: account.profile)
  }

  /// Asks for the present PIN first, so that a wrong one is found before anybody has thought of a new one.
  func changePushPIN(of account: AccountID, _ progress: @escaping Progress) async throws -> SessionFacts {
    guard let length = try PrivacyIDEA.pinLength(of: vault.account(account)) else {
      throw CommandFailure(.usage, "account \(account) has no PIN: its token server does not want one")
    }
    try await service.errands.perform { panel in
      let dialogue = PanelDialogue(panel, timekeeper: timekeeper)
      progress("type the present PIN of \(account) on the keypad, then Enter")
      let present = try await presentPIN(of: account, length: length, dialogue)
      progress("choose a PIN of \(length) digits: type it on the keypad, Enter, and once more")
      let chosen = try await dialogue.newPIN(keeping: PushSettings.policy(digits: length))
      guard
        case .unlocked = try vault.changePIN(
          of: account, from: present, to: chosen, parameters: keyDerivation, clock: timekeeper)
      else { throw CommandFailure(.unavailable, "another PIN was typed meanwhile; the PIN is as it was") }
      await dialogue.show(.confirmed)
    }
    return SessionFacts(account: account.text)
  }

  private func presentPIN(of account: AccountID, length: Int, _ dialogue: PanelDialogue) async throws -> PIN {
    while true {
      let pin = try await dialogue.currentPIN(length: length)
      await dialogue.show(.talkingToServer)
      switch try await judgement(of: pin, account) {
      case .wrong(let counts):
        service.note(counts, of: account)
        await dialogue.show(.pinWrong(remaining: counts.remaining))
      case .wiped:
        service.reload()
        throw TokenServerFault.pinsUsedUp
      case .right, .mustWait: return pin
      }
    }
  }

  /// Sits out the wait after a wrong one.
  private func judgement(of pin: PIN, _ account: AccountID) async throws -> PINJudgement {
    let judge = VaultPINJudge(vault: vault, timekeeper: timekeeper)
    while true {
      let judgement = try judge.judge(pin, of: account)
      guard case .mustWait(let wait) = judgement else { return judgement }
      try await timekeeper.sleep(until: timekeeper.now + wait)
    }
  }
}
