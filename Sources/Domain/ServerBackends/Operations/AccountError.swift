// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// Errors of operations on accounts.
package enum AccountError: ReportedError, Equatable {
  case unknown(String)
  /// There is no account of this name at a server that can do this; with the names of the kinds that can.
  case unknownAmong(String, kinds: String)
  case notActive(String)
  /// A new name that is not one (see `isAccountName`).
  case invalidName
  /// No name was given, and there is not exactly one account to choose.
  case nameOne(of: [AccountID])
  case withoutOneTimePasswords(String)
  case noOneTimePasswords
  /// Accounts of its kind have no locks; with the names of the kinds that have them.
  case notLockable(AccountID, kinds: String)
  /// A lock was requested for an account that cannot be used.
  case unusable(AccountID)
  case withoutSessions(AccountID)
  /// The origin of the account's token server was given as that of a resource server.
  case originOfTokenServer(String, AccountID)
  /// The allow-list is full.
  case tooManyOrigins(AccountID)
  /// The account's server knows an account only as a whole.
  case withoutLayers(AccountID)
  /// The account is not one that its PIN can enroll again; with the reason.
  case notEnrollable(AccountID, why: String)
  /// The board has no keypad.
  case noKeypad(AccountID)
  /// Another command changed the PIN since the present one was typed.
  case pinChangedMeanwhile
  /// The server may have changed the PIN, or not.
  case pinUnconfirmed(why: String)

  package var category: ErrorCategory {
    switch self {
    case .unknown, .unknownAmong, .notActive, .invalidName, .nameOne, .withoutOneTimePasswords, .noOneTimePasswords,
      .notLockable, .withoutSessions, .withoutLayers, .tooManyOrigins, .noKeypad:
      .usage
    case .unusable, .originOfTokenServer, .notEnrollable: .refused
    case .pinChangedMeanwhile, .pinUnconfirmed: .unavailable
    }
  }

  package var description: String {
    switch self {
    case .unknown(let name): "no account \"\(name)\"; `approval-token accounts` lists the accounts"
    case .unknownAmong(let name, let kinds): "no account \"\(name)\" of \(kinds); see `approval-token accounts`"
    case .notActive(let name): "no active account \"\(name)\"; see `approval-token accounts`"
    case .invalidName: "a name has 1 to 64 bytes without blanks"
    case .nameOne(let accounts):
      accounts.isEmpty
        ? "no active account; run `approval-token enroll` first"
        : "there are several accounts; name one of: \(accounts.map(\.text).sorted().joined(separator: ", "))"
    case .withoutOneTimePasswords(let name):
      "account \"\(name)\" has no one-time passwords here; see `approval-token accounts`"
    case .noOneTimePasswords: "no account has one-time passwords"
    case .notLockable(let account, let kinds): "account \(account) cannot be locked: only accounts of \(kinds) can"
    case .unusable(let account): "account \(account) is not active, so it cannot be used or locked"
    case .withoutSessions(let account): "\(account) has no login with this token: its server has no sessions"
    case .withoutLayers(let account):
      "\(account) cannot be disenrolled: its server knows it only as a whole; `approval-token remove \(account)`"
    case .originOfTokenServer(let origin, let account):
      "\(origin) is the token server of \(account), which is not a resource server"
    case .tooManyOrigins(let account):
      "\(account) may call \(AccountRecord.mostOrigins) origins already; remove one with `allow --remove`"
    case .notEnrollable(let account, let why):
      "account \(account) cannot be enrolled again with its PIN: \(why); see `approval-token accounts`"
    case .noKeypad(let account): "account \(account) has no PIN; a PIN requires a keypad, and this board has none"
    case .pinChangedMeanwhile: "another command changed the PIN meanwhile; this change was discarded"
    case .pinUnconfirmed(let why):
      "the token server did not confirm the new PIN: either the old or the new PIN is valid. The token asks the "
        + "server as soon as it is reachable (\(why))"
    }
  }
}
