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

  /// Begins one use of an authenticator: what its data is bound to.
  func use(
    _ authenticator: String, of account: AccountID, for step: DriverCall.Step
  ) throws(TokenServerError) -> AuthenticatorUse

  /// Registers a custom authenticator for the session's account: the server's script gets the data. Durable on both
  /// sides when it returns; after a crash, the server is asked.
  /// - Returns: the result of the server's script.
  func register(
    _ use: AuthenticatorUse, with data: AuthenticatorData, in session: UserSession
  ) async throws(TokenServerError) -> AuthenticatorInfo?

  /// Registers a biometric authenticator for the session's account, whose PIN proves the user. The template stays on
  /// this token. Otherwise as `register`.
  /// - Throws: `.pinIncorrect`, `.userDeregistered`.
  func registerBiometric(
    _ use: AuthenticatorUse, with data: AuthenticatorData, typing pin: PIN, in session: UserSession
  ) async throws(TokenServerError)

  /// Deregisters an authenticator of the session's account, and records it.
  /// - Parameter data: for the server's script; nil for none.
  /// - Returns: whether the server was notified; if not, it is removed only here.
  func deregister(
    _ authenticator: String, with data: AuthenticatorData?, in session: UserSession
  ) async throws(TokenServerError) -> Bool

  /// Chooses what a login uses that names no authenticator, and records it. The caller has checked that it is
  /// registered.
  func prefer(_ authenticator: String, of account: AccountID) throws(StateStoreError)

  /// Logs in with a registered custom authenticator.
  /// - Throws: `.authenticatorFailed`.
  func logIn(with use: AuthenticatorUse, data: AuthenticatorData) async throws(TokenServerError) -> UserSession
}

extension UserAuthenticators {
  /// Default: there are no biometric authenticators.
  package func registerBiometric(
    _ use: AuthenticatorUse, with data: AuthenticatorData, typing pin: PIN, in session: UserSession
  ) async throws(TokenServerError) {
    throw .authenticatorRefused(number: 10006, "this kind of server has no biometric authenticators")
  }
}

/// One use of an authenticator outside of a request.
package struct AuthenticatorUse: Sendable, Equatable {
  package let account: AccountID
  package let call: DriverCall
  /// The UUID that makes the challenge fresh: the ID of the registration, or the `jti` of the login.
  package let identifier: String

  package init(account: AccountID, call: DriverCall, identifier: String) {
    self.account = account
    self.call = call
    self.identifier = identifier
  }
}
