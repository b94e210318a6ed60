// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

/// A client whose accounts can have authenticators besides the PIN.
package protocol UserAuthenticators: UserSessions {
  /// What the account has or could register, the PIN first. Queries the server.
  func authenticators(of account: AccountID) async throws(TokenServerError) -> [Authenticator]

  /// What is registered on this token, without a query: the PIN first, and identifiers instead of names.
  func storedAuthenticators(of account: AccountID) throws(TokenServerError) -> [Authenticator]

  /// Whether the user has chosen another authenticator than the PIN.
  func hasPreference(_ account: AccountID) -> Bool

  /// Registers a custom authenticator for the session's account: the server's script gets the code. Durable on both
  /// sides when it returns; after a crash, the server is asked.
  func register(
    _ authenticator: String, with code: EnteredDigits, in session: UserSession
  ) async throws(TokenServerError)

  /// Deregisters an authenticator of the session's account, and records it.
  /// - Returns: whether the server was notified; if not, it is removed only here.
  func deregister(_ authenticator: String, in session: UserSession) async throws(TokenServerError) -> Bool

  /// Chooses what a login uses that names no authenticator, and records it. The caller has checked that it is
  /// registered.
  func prefer(_ authenticator: String, of account: AccountID) throws(StateStoreError)

  /// Logs in with a registered custom authenticator.
  /// - Throws: `.authenticatorFailed`.
  func logIn(
    _ account: AccountID, with authenticator: String, code: EnteredDigits
  ) async throws(TokenServerError) -> UserSession
}
