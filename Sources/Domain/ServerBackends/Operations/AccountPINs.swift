// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// What a service keeps in memory of its users, and who it notifies. Any task may call it.
package protocol UserState: Sendable {
  /// The session of the logged-in user; nil after its expiry.
  var session: UserSession? { get }
  func set(_ session: UserSession?)

  /// The counts that a PIN verifier has reported.
  func note(_ counts: FailureCounts, of account: AccountID)
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

  static func askForNewPIN(_ digits: Int) -> String {
    "choose a PIN of \(digits) digits: type it on the keypad, press Enter, then repeat"
  }

  /// Shows that the account must be enrolled again. The indication lasts until an account is enrolled.
  func showLoss(of account: AccountID, by fault: TokenServerError, on panel: any Panel) async {
    if fault.effect == .wipeAccount { users.noteLoss(of: account) }
    await panel.show(.mustEnroll)
  }

  package func record(
    _ kind: AuditEntry.Kind, _ account: AccountID, _ detail: String = ""
  ) throws(StateStoreError) {
    let entry = environment.auditEntry(kind, account: account, detail: detail)
    try store.record(entry)
    users.log(entry)
  }
}
