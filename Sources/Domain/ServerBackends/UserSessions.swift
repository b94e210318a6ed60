// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import MobileAuth
package import PINProtection
package import Secrets

/// A client whose server verifies PINs: users log in with them, and change them there.
package protocol UserSessions: TokenServerClient {
  /// The number of digits of the account's PIN.
  /// - Throws: `.refused` for an account without a PIN.
  func pinLength(of account: AccountID) async throws(TokenServerError) -> Int

  /// Logs in with a PIN.
  /// - Throws: `.pinIncorrect`, `.userDeregistered`.
  func logIn(_ account: AccountID, typing pin: PIN) async throws(TokenServerError) -> UserSession

  /// Notifies the server that the session ended. The local session has already ended.
  func logOut(_ session: UserSession) async throws(TokenServerError)

  /// Starts a PIN change: proves the current PIN and gets a refresh token for the new PIN.
  /// - Parameter session: a session of the account; nil logs in first.
  /// - Throws: `.pinIncorrect`, `.userDeregistered`.
  func beginPINChange(
    _ account: AccountID, typing pin: PIN, session: UserSession?
  ) async throws(TokenServerError) -> PINChangeTicket

  /// Completes a PIN change. After `.unreachable`, only the server knows which PIN is valid; the token queries it when
  /// the server is reachable.
  /// - Returns: the session the change was made in.
  func finishPINChange(
    _ ticket: PINChangeTicket, choosing pin: PIN, parameters: Scrypt.Parameters
  ) async throws -> UserSession
}

/// A login of the user: a user access token, in memory only.
package struct UserSession: Sendable, Equatable {
  package let account: AccountID
  /// When the session expires at the server.
  package let until: MonotonicInstant
  package let accessToken: String
  /// The identifier of the authenticator that proved the user.
  package let authenticator: String
  /// The result of the server's script, for a login with a custom authenticator.
  package let info: AuthenticatorInfo?

  package init(
    account: AccountID, until: MonotonicInstant, accessToken: String,
    authenticator: String = Authenticator.pinIdentifier, info: AuthenticatorInfo? = nil
  ) {
    self.account = account
    self.until = until
    self.accessToken = accessToken
    self.authenticator = authenticator
    self.info = info
  }

  /// Whether the PIN of the account began it: no other session may change what proves the user.
  package func isOfPIN(of account: AccountID) -> Bool {
    self.account == account && authenticator == Authenticator.pinIdentifier
  }
}

/// A PIN change that the server has started, with the refresh token to encrypt with the new PIN.
package struct PINChangeTicket: Sendable {
  package let profile: String
  package let id: String
  package let token: SecretBytes
  package let session: UserSession
  /// The rules for the new PIN.
  package let policy: PINPolicy

  package init(profile: String, id: String, token: SecretBytes, session: UserSession, policy: PINPolicy) {
    self.profile = profile
    self.id = id
    self.token = token
    self.session = session
    self.policy = policy
  }
}
