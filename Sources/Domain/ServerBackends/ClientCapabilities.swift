// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// A client that can ask its server to remove an account.
package protocol Deregistration: TokenServerClient {
  /// Notifies the server that the account is removed from this device. The caller then deletes it here even if this
  /// throws.
  func deregister(_ account: AccountID) async throws(TokenServerError)
}

/// A client whose server has layers of enrollment: a user with a PIN, keys, and push.
package protocol Disenrollment: TokenServerClient {
  /// Gives up the keys and the push enrollment of an account at the server, or the push enrollment alone. `remainder`
  /// then has what stays. The caller removes the rest here.
  func disenroll(_ account: AccountID, pushOnly: Bool) async throws(TokenServerError)
}

/// A client that polls, and can poll earlier after a hint.
package protocol PollWaking: TokenServerClient {
  /// Ends the pause before the next poll. The caller limits the rate, because a hint may come from an attacker.
  func wake()
}

/// A client that learns the time from its server.
package protocol TimeSource: TokenServerClient {
  /// Unix seconds by the server's clock, for boards without a clock; nil before the first authenticated response.
  var serverTime: Int64? { get async }
}

/// A backend whose servers cannot report whether an account is still registered, but can be reached.
package protocol ReachCheck: ServerBackend {
  /// Checks that the server of the accounts is reachable and trusted.
  /// - Throws: `TokenServerError`, `StateStoreError`.
  func reach(_ server: TokenServerRecord, accounts: [AccountRecord]) async throws
}
