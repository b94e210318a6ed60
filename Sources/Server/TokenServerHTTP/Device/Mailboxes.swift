// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

/// Hints over an MQTT broker.
package protocol Mailboxes: Sendable {
  /// The MQTT topic for the device's hints: not guessable, and the same after every restart.
  func topic(of clientID: ClientID) -> String
  func set(_ clientID: ClientID, isWanted: Bool)
}
