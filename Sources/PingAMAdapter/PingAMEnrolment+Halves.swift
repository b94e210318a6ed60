import MobileAuth
import Secrets

/// What is on the card before AM hears of an account, beside its push half: what makes one-time passwords, and a PIN.
extension PingAMEnrolment {
  /// AM takes both halves at once. Should its word on them be lost, the one for one-time passwords must be here already.
  func keepOtherHalf(
    _ oath: OATHCredential?, of draft: inout Draft, _ policies: AccountPolicies
  ) async throws {
    guard let oath else {
      // An earlier code's goes with its mechanism, which nothing can make active any more.
      try oathDesk.drop(draft.account.id)
      return try await choosePIN(&draft, policies)
    }
    guard draft.mechanism.facts.codesWantPIN == true else {
      try await choosePIN(&draft, policies)
      return try oathDesk.keep(oath, nil, draft.account, draft.account)
    }
    // Otherwise an earlier run has kept it, in one step with the PIN.
    guard draft.mechanism.facts.pinLength == nil else { return }
    guard let pinDesk else { throw Self.nobodyTypes }
    let pin = try await choose(at: pinDesk)
    let known = draft.account
    draft.mechanism.facts.pinLength = pin.count
    draft.account.secrets = draft.mechanism.encoded
    try oathDesk.keep(oath, pin, known, draft.account)
  }

  static let nobodyTypes = PanelDialogue.Ending.panelUnavailable(
    "one-time passwords are to want a PIN: enrol while `approval-token serve` runs on a board with a keypad")

  private func choose(at desk: PINDesk) async throws -> PIN {
    progress("choose a PIN: type it on the keypad, Enter, and once more; the QR code lives about a minute")
    return try await desk.choose()
  }

  /// One that pushes alone want.
  private func choosePIN(_ draft: inout Draft, _ policies: AccountPolicies) async throws {
    guard policies.wantsPIN || settings.asksForPIN, draft.mechanism.facts.pinLength == nil, let pinDesk else {
      return
    }
    let pin = try await choose(at: pinDesk)
    try pinDesk.keep(draft.account.id, pin)
    let withPIN = try registry.update(draft.account.id) { try PingAM.with(pinLength: pin.count, $0) }
    guard let account = withPIN else { throw Self.isGone(draft.account.id) }
    draft.mechanism.facts.pinLength = pin.count
    draft.account = account
  }
}
