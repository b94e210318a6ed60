// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// What a service keeps in memory of its users, and who it notifies. Any task may call it.
package protocol UserState: Sendable {
  /// The session of the logged-in user; nil after its expiry.
  var session: UserSession? { get }
  func set(_ session: UserSession?)

  /// The counts that a PIN verifier has reported.
  func note(_ counts: FailureCounts, of account: AccountID)
  /// The counts that a PIN verifier has reported last; nil for none.
  func failureCounts(of account: AccountID) -> FailureCounts?
  /// The PIN was right: no wrong attempt counts any more.
  func noteRightPIN(of account: AccountID)
  /// The account was removed because of wrong PINs, or revoked while it was used.
  func noteLoss(of account: AccountID)

  /// Logs an entry that is in the audit chain.
  func log(_ entry: AuditEntry)
  /// Reads the accounts again, after one has changed.
  func reload()
}

/// PINs that the user types at the panel outside of a request. A wrong one is counted, recorded and shown, and the user
/// is asked again; an account that its server revokes, or that this token wipes, is removed.
package struct AccountPINs: Sendable {
  /// Called with messages for the waiting user.
  package typealias Progress = @Sendable (String) -> Void

  let context: BackendContext
  let users: any UserState

  package init(_ context: BackendContext, _ users: any UserState) {
    self.context = context
    self.users = users
  }

  var store: any BackendStore { context.store }
  var environment: TokenEnvironment { context.environment }

  static func askAgain(after counts: FailureCounts) -> String { "wrong PIN, \(counts): type it again, then Enter" }

  static func askForNewPIN(_ digits: Int) -> String {
    "choose a PIN of \(digits) digits: type it on the keypad, press Enter, then repeat"
  }

  /// Shows that the account must be enrolled again. The indication lasts until an account is enrolled.
  func showLoss(of account: AccountID, by fault: TokenServerError, on panel: any Panel) async {
    if fault.effect == .wipeAccount { users.noteLoss(of: account) }
    await panel.show(.mustEnroll)
  }

  /// Ends the session here.
  package func endSession(of account: AccountID, because why: String = "") throws(StateStoreError) {
    users.set(nil)
    try record(.loggedOut, account, why)
  }

  /// Ends a session that the server no longer knows.
  func endLostSession(of account: AccountID) throws(StateStoreError) {
    try endSession(of: account, because: "the token server no longer knows the session")
    report(.loggedOut(isServerNotified: true), account)
  }

  /// Reports a step to programs that follow the token.
  package func report(_ event: AuthenticationStep.Event, _ account: AccountID, authenticator: String? = nil) {
    environment.report(.step(AuthenticationStep(event, of: account, authenticator: authenticator)))
  }

  /// - Parameter failure: why the previous entry did not count.
  func reportPINChallenge(
    of account: AccountID, for purpose: AuthenticationStep.Purpose, _ counts: FailureCounts?,
    _ failure: AuthenticationStep.Failure?
  ) {
    report(
      .challenged(purpose, ChallengeSummary(.pin, counts: counts), after: failure), account,
      authenticator: Authenticator.pinIdentifier)
  }

  package func record(
    _ kind: AuditEntry.Kind, _ account: AccountID, _ detail: String = ""
  ) throws(StateStoreError) {
    let entry = environment.auditEntry(kind, account: account, detail: detail)
    try store.record(entry)
    users.log(entry)
  }
}
