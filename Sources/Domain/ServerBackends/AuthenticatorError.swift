// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// Errors of operations on authenticators.
package enum AuthenticatorError: ReportedError, Equatable {
  /// The account's server has no sessions, and so no authenticators.
  case noneAtServer(AccountID)
  /// The list has no such identifier; with those that it has.
  case unknown(String, AccountID, known: [String])
  case notRegistered(String, AccountID)
  case alreadyRegistered(String, AccountID)
  /// This token has no source for its data.
  case notUsable(String)
  /// As above, after a registration.
  case notUsableNow(String)
  /// The server does not list the account's preferred authenticator.
  case preferredNotListed(AccountID)
  /// A PIN cannot be deregistered.
  case pinStays(AccountID)
  /// There is no session of the PIN, and the board has no keypad to begin one.
  case notLoggedIn(AccountID)
  /// The server no longer knows the session.
  case sessionEnded(AccountID)
  /// The account's server asks for no biometric check for which an authenticator could stand.
  case noBiometricChecks(AccountID)
  /// There is no PIN that would prove the user of a registration.
  case noPIN(AccountID)
  /// This token cannot verify what the authenticator answers, and why.
  case unverifiable(String, String)

  package var category: ErrorCategory {
    switch self {
    case .noneAtServer, .noBiometricChecks: .usage
    default: .refused
    }
  }

  package var number: Int? {
    switch self {
    case .noneAtServer, .noBiometricChecks, .noPIN: nil
    case .unknown: 9015
    case .notRegistered: 10007
    case .alreadyRegistered: 10004
    case .notUsable, .notUsableNow, .preferredNotListed: 10006
    case .pinStays: 10008
    case .notLoggedIn, .sessionEnded: 9010
    case .unverifiable: 9027
    }
  }

  package var description: String {
    switch self {
    case .noneAtServer(let account): "\(account) has no authenticators: its server has no sessions"
    case .unknown(let id, let account, let known):
      "\(account) has no authenticator \"\(id.prefix(64))\""
        + (known.isEmpty ? "" : "; there are: \(known.joined(separator: ", "))")
    case .notRegistered(let id, let account):
      "\(id) is not registered: `approval-token authenticator register \(account) \(id)`"
    case .alreadyRegistered(let id, let account): "\(id) is registered for \(account) already"
    case .notUsable(let id):
      "this token cannot use \(id) now: its reader or program is not there, or the configuration does not have it"
    case .notUsableNow(let id): "this token cannot use \(id) now; log in with `--authenticator pin`"
    case .preferredNotListed(let account):
      "the token server does not list the preferred authenticator of \(account) now; log in with `--authenticator pin`"
    case .pinStays(let account): "the PIN of \(account) cannot be deregistered"
    case .notLoggedIn(let account):
      "\(account) is not logged in with its PIN, and this board has no keypad to type it on"
    case .sessionEnded(let account): "\(account) is not logged in any more; repeat the command"
    case .noBiometricChecks(let account):
      "the token server of \(account) asks for no fingerprint for which another authenticator could stand"
    case .noPIN(let account):
      "\(account) has no PIN, which must be typed to register an authenticator: `approval-token pin change \(account)`"
    case .unverifiable(let id, let why): "this token cannot verify \(id): \(why)"
    }
  }
}
