// SPDX-License-Identifier: Apache-2.0

/// What a command asks of the running service on the control socket. The socket is in the state directory, so only the
/// token's own Unix user can connect.
package enum ControlRequest: Equatable, Sendable {
  case status, pending
  /// The accounts have changed: the service reads them again.
  case reload
  case enroll(EnrollmentOptions)
  /// A push message as received, JSON.
  case push(message: String)
  /// The account is optional if there is only one; without an authenticator, the preferred one is used.
  case logIn(account: String?, authenticator: String?)
  case authenticators(account: String?)
  /// Registers an authenticator, after a hold at the panel.
  case registerAuthenticator(account: String, identifier: String)
  case deregisterAuthenticator(account: String, identifier: String)
  case preferAuthenticator(account: String, identifier: String)
  case logOut
  case changePIN(account: String?)
  case oneTimePassword(account: String?)
  case forget(account: String)
  case simulate(SimulatedInput)
  case led, followLED
  /// Streams what is on the panel.
  case watch
  /// Shows a pending request next.
  case show(transaction: String)
  /// Calls a resource server as the logged-in user.
  case call(ResourceCall)
  /// Adds an origin to an account's allow-list, after a very long hold at the panel, or removes it.
  case allow(account: String, origin: String)
  case disallow(account: String, origin: String)

  /// The socket of the service with this state directory.
  package static func socket(in stateDirectory: String) -> String { stateDirectory + "/control.sock" }
}

/// Input at a simulated board.
package enum SimulatedInput: Equatable, Sendable {
  case hold(milliseconds: Int64)
  case doublePress
  /// A hold with the duration for "not me" from the board profile.
  case notMe
  /// Names of keys.
  case keys([String])

  /// The names of all keys, for users.
  package static let keyNames = "0 to 9, enter, delete, clear, escape, unplug, plug-in"
}
