// SPDX-License-Identifier: Apache-2.0

/// What a command asks of the running service on the control socket. The socket is in the state directory, so only the
/// token's own Unix user can connect.
package enum ControlRequest: Equatable, Sendable {
  case status, pending, selfTest
  /// The accounts have changed: the service reads them again.
  case reload
  case enroll(EnrollmentOptions)
  /// Enrolls an account again with its PIN.
  case enrollAgain(account: String)
  /// Gives up the keys of an account, or its push enrollment alone.
  case disenroll(account: String, pushOnly: Bool)
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
  /// Removes all accounts and keys after a very long hold at the panel, and ends the service.
  case factoryReset
  case simulate(SimulatedInput)
  case led, followLED
  /// Streams the LED, the buzzer and what is plugged in of a simulated board.
  case followBoard
  /// Presses a button of a simulated board and keeps it down. The first answer says that it is down. The press ends
  /// with `releaseButton`; without it, when the client disconnects, as a press that is no gesture.
  case pressButton(SimulatedButtonName)
  /// Releases the button that is down. A press that its user held for a different time than the token measures is
  /// canceled: one of the two came late.
  case releaseButton(heldMilliseconds: Int64)
  /// Streams what is on the panel.
  case watch
  /// The events of the recent past, or those from now on until the client disconnects.
  case events(follow: Bool)
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
  /// What the authenticator says that is asked now.
  case authenticator(SimulatedAnswer)
  /// Unplugs the chip with the buttons, the LED and the buzzer, or plugs it in.
  case chip(isConnected: Bool)

  /// The names of all keys, for users.
  package static let keyNames = "0 to 9, enter, delete, clear, escape, unplug, plug-in"
}

/// A button of a simulated board.
package enum SimulatedButtonName: String, Codable, CaseIterable, Sendable {
  case approve
  /// The second button, every press of which denies.
  case deny
}

/// What a simulated authenticator says.
package enum SimulatedAnswer: Equatable, Sendable {
  /// The data as text, in UTF-8.
  case data(String)
  case cancel(reason: String)
  case fallback
  case retry(reason: String)
  /// The security key is touched.
  case touch
  /// The badge with this name is inserted.
  case badge(String)
  /// The finger with this name is put on the reader.
  case finger(String)
  /// The security key, or the reader of badges, is unplugged until it is used again.
  case noKey, noBadge
}
