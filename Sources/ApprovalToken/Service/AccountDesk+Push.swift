import Courier
import MobileAuth
import PINProtection
import PingAMAdapter
import PrivacyIDEAAdapter
import ReferenceProtocol
import Secrets
import Vault

/// Push tokens and mechanisms: their server only wants a PIN typed, so that it is chosen, judged and changed here.
extension AccountDesk {
  func enrolPushToken(_ call: ControlCall, _ progress: @escaping Progress) async throws -> AccountFacts {
    var settings = push.enrolment
    settings.asksForPIN = call.asksPIN == true
    let enrolment = PushEnrolment(
      registry: vault, timekeeper: timekeeper, settings: settings, pinDesk: pinDesk, progress: progress,
      makeCourier: makeCourier)
    let account = try await enrolment.enrol(call.uri ?? "", name: call.account, trust: try trust(for: call))
    service.reload()
    return AccountFacts(account: account.id.text, server: account.server.text, profile: account.profile)
  }

  func enrolMechanism(_ call: ControlCall, _ progress: @escaping Progress) async throws -> AccountFacts {
    var settings = push.mechanism
    settings.codesWantPIN = call.asksPIN == true
    settings.deviceToken = call.mailbox
    let enrolment = PingAMEnrolment(
      registry: vault, timekeeper: timekeeper, settings: settings, pinDesk: pinDesk,
      isTamperedWith: { vault.isTamperedWith },
      oathDesk: OATHAccounts.desk(in: vault, clock: timekeeper, guarding: { pinGuard($0) }),
      progress: {
        // The account is on the card when AM hears of it, and messages may come although AM's answer is lost.
        service.followMailboxes()
        progress($0)
      }, makeCourier: makeCourier)
    defer { service.followMailboxes() }
    let account = try await enrolment.enrol(call.uri ?? "", name: call.account, trust: try trust(for: call))
    service.reload()
    return AccountFacts(account: account.id.text, server: account.server.text, profile: account.profile)
  }

  /// - Parameter pins: of the URI; nil if they are the call's.
  func trust(for call: ControlCall, pins: [String]? = nil) throws -> ServerTrust {
    var trust = try vault.trust(pins: pins ?? call.pins ?? [], authorities: call.authorities ?? authorities)
    trust.dropsPins = call.dropsPins == true
    return trust
  }

  /// Nil where nobody can type a PIN.
  private var pinDesk: PINDesk? {
    guard capabilities.keypad else { return nil }
    return PINDesk {
      try await newPIN(keeping: push.policy)
    } keep: { account, pin throws(CustodyFault) in
      // What is received is verified, and answers are signed, with the same key: none can be under the PIN, which guards
      // the act alone.
      try vault.setPIN(
        of: account, to: pin, keys: SecretBytes(copying: Array(account.text.utf8)), limit: push.pinAttempts,
        parameters: keyDerivation, clock: timekeeper)
    }
  }

  /// Asks for the present PIN first, so that a wrong one is found before anybody has thought of a new one.
  func changePushPIN(of account: AccountID, _ progress: @escaping Progress) async throws -> SessionFacts {
    let record = try vault.account(account)
    let isMechanism = service.server(of: record) is PingAMTokenServer
    guard let length = try isMechanism ? PingAM.pinLength(of: record) : PrivacyIDEA.pinLength(of: record) else {
      guard let pinDesk else {
        throw CommandFailure(.usage, "account \(account) has no PIN, and one needs a keypad, which this board has not")
      }
      return try await chooseFirstPIN(of: account, at: pinDesk, progress) { digits, record in
        try isMechanism ? PingAM.with(pinLength: digits, record) : PrivacyIDEA.with(pinLength: digits, record)
      }
    }
    return try await changeOwnPIN(of: account, length: length, progress)
  }

  /// Of a PIN that this token judges.
  func changeOwnPIN(of account: AccountID, length: Int, _ progress: @escaping Progress) async throws -> SessionFacts {
    let server = try vault.account(account).server
    try await service.errands.perform(at: server) { panel in
      let dialogue = PanelDialogue(panel, timekeeper: timekeeper)
      progress("type the present PIN of \(account) on the keypad, then Enter")
      let present = try await presentPIN(of: account, length: length, dialogue, on: panel)
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

  /// AM tells only with a login that it wants the person known; and the person may want a PIN where no server does.
  /// - Parameter having: the account as it is with a PIN of so many digits.
  private func chooseFirstPIN(
    of account: AccountID, at desk: PINDesk, _ progress: Progress,
    having: (Int, AccountRecord) throws -> AccountRecord
  ) async throws -> SessionFacts {
    progress("choose a PIN of \(push.policy.length) digits: type it on the keypad, Enter, and once more")
    let pin = try await desk.choose()
    try desk.keep(account, pin)
    try vault.update(account) { try having(pin.count, $0) }
    service.reload()
    return SessionFacts(account: account.text)
  }

  private func presentPIN(
    of account: AccountID, length: Int, _ dialogue: PanelDialogue, on panel: any Panel
  ) async throws -> PIN {
    while true {
      let pin = try await dialogue.currentPIN(length: length)
      await dialogue.show(.talkingToServer)
      switch try await judgement(of: pin, account) {
      case .wrong(let counts):
        service.note(counts, of: account)
        await dialogue.show(.pinWrong(remaining: counts.remaining))
      case .wiped:
        await showLoss(of: account, by: .pinsUsedUp, on: panel)
        service.reload()
        throw TokenServerFault.pinsUsedUp
      case .right, .mustWait:
        service.noteRightPIN(of: account)
        return pin
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
