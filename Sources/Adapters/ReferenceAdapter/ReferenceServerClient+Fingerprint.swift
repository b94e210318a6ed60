// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth
import PINProtection
import ReferenceProtocol
package import Secrets
package import ServerBackends
import Synchronization

/// What a typed PIN decrypts. Whether it was right, only the server knows.
struct OpenedPIN: Sendable {
  /// `KK'` of the PIN.
  let key: KnowledgeKey
  let tokens: UnwrappedTokens
}

/// The tokens of fingerprints as the PIN of an answer decrypted them.
struct UnconfirmedTokens: Sendable {
  let idempotencyKey: String
  let tokens: [(authenticator: StoredAuthenticator, token: SecretBytes)]
}

/// Fingerprints. A match is a yes of this token alone, so that the refresh token with which it is answered is usable
/// only after a right PIN since power-on: it is encrypted with a PIN-derived key, and decrypted into locked memory.
extension ReferenceServerClient {
  func unlockedName(of authenticator: StoredAuthenticator, _ account: Account) -> UnlockedTokens.Name {
    UnlockedTokens.Name(server: id, profile: account.profile, authenticator: authenticator.identifier)
  }

  /// Whether the authenticator's key is available; always, unless it waits for the PIN.
  func isUnlocked(_ authenticator: StoredAuthenticator, of account: Account) -> Bool {
    authenticator.wrapName == nil
      || unlocked.token(unlockedName(of: authenticator, account), at: environment.now) != nil
  }

  /// `RT` of an authenticator.
  func token(of authenticator: StoredAuthenticator, _ account: Account) throws(TokenServerError) -> SecretBytes {
    guard authenticator.wrapName != nil else { return authenticator.token }
    guard let token = unlocked.token(unlockedName(of: authenticator, account), at: environment.now) else {
      throw .authenticatorRefused(
        number: Problem.Slug.authenticatorNotSupported.code,
        "\(authenticator.identifier) waits for the PIN: it was not used since the token was switched on, or for too long"
      )
    }
    return token
  }

  // MARK: The right PIN

  /// Makes the fingerprints of an account usable, after the server has found the PIN right.
  func unlock(_ opened: OpenedPIN, of account: Account) { unlock(tokens(opened, of: account), of: account) }

  private func unlock(_ tokens: [(authenticator: StoredAuthenticator, token: SecretBytes)], of account: Account) {
    let registered = self.account(profile: account.profile)?.authenticators.filter { $0.registration == nil } ?? []
    for (authenticator, token) in tokens where registered.contains(where: { $0.isSame(as: authenticator) }) {
      unlocked.put(token, unlockedName(of: authenticator, account), at: environment.now)
    }
  }

  private func tokens(
    _ opened: OpenedPIN, of account: Account
  ) -> [(authenticator: StoredAuthenticator, token: SecretBytes)] {
    account.authenticators.compactMap { known in known.decrypted(by: opened.tokens).map { (known, $0) } }
  }

  /// Keeps what the PIN of an answer decrypted until the server has answered.
  func note(_ opened: OpenedPIN, of account: Account, in response: ChallengeResponse) {
    let tokens = tokens(opened, of: account)
    unconfirmed.withLock {
      $0[account.profile] =
        tokens.isEmpty ? nil : UnconfirmedTokens(idempotencyKey: response.idempotencyKey, tokens: tokens)
    }
  }

  /// The server has answered.
  /// - Parameter isRight: whether it has confirmed an approval.
  func conclude(_ response: SealedResponse, isRight: Bool) {
    guard response.hasPIN, let account = try? account(response.request.pending.account),
      let found = unconfirmed.withLock({ $0.removeValue(forKey: account.profile) }),
      isRight, found.idempotencyKey == response.idempotencyKey
    else { return }
    unlock(found.tokens, of: account)
  }

  /// Makes another PIN the only one, and removes the fingerprints: their tokens were encrypted with the former one, and
  /// a token is encrypted once.
  /// - Returns: the identifiers of what was removed.
  func replacePIN(with token: ProtectedToken, of profile: String) throws(StateStoreError) -> [String] {
    let lost = account(profile: profile)?.authenticators.filter { $0.wrapName != nil } ?? []
    let names = lost.map(\.identifier).joined(separator: ", ")
    let entry =
      lost.isEmpty
      ? nil
      : account(profile: profile).map {
        environment.auditEntry(.authenticatorRevoked, account: $0.id, detail: "\(names): the PIN was changed")
      }
    try change(profile, entry) { credentials in
      credentials.pin = AccountPIN(token)
      credentials.authenticators.removeAll { $0.wrapName != nil }
      if lost.contains(where: { $0.identifier == credentials.preferred }) { credentials.preferred = nil }
    }
    if let account = account(profile: profile) {
      for authenticator in lost { unlocked.remove(unlockedName(of: authenticator, account)) }
    }
    if let entry { environment.report(.audited(entry)) }
    return lost.map(\.identifier)
  }

  // MARK: Registration, login, end

  package func registerBiometric(
    _ use: AuthenticatorUse, with data: AuthenticatorData, typing pin: PIN, in session: UserSession
  ) async throws(TokenServerError) {
    let account = try await confirmedPINChange(session.account)
    let opened = try open(account, typed: pin)
    let authenticator = use.call.authenticator
    let assertion = try await client.assertion(
      by: opened.key, for: account.profile, path: Self.registrations(of: authenticator, account))
    _ = try await register(use, in: session, assertion: assertion) {
      (account, token, registration) throws(TokenServerError) in
      let masked: SecretBytes
      do { masked = try opened.tokens.masked(token, named: registration) } catch {
        throw .refused("the token of \(authenticator) cannot be encrypted: \(error)")
      }
      let stored = StoredAuthenticator(
        identifier: authenticator, token: masked, registration: nil, driverData: data.registration,
        wrapName: registration)
      // The server has found the PIN right: its answer has the token.
      unlocked.put(token, unlockedName(of: stored, account), at: environment.now)
      return stored
    }
    unlock(opened, of: try self.account(session.account))
  }

  /// Logs in with a fingerprint. The finger has matched.
  func logIn(
    with stored: StoredAuthenticator, of account: Account
  ) async throws(TokenServerError) -> UserSession {
    try await logIn(with: stored, by: key(of: stored, account), of: account)
  }

  private func logIn(
    with stored: StoredAuthenticator, by key: KnowledgeKey, of account: Account
  ) async throws(TokenServerError) -> UserSession {
    let assertion = try await client.assertion(
      by: key, for: account.profile, audience: ServerMetadata(issuer: client.issuer).tokenEndpoint,
      authenticator: stored.identifier)
    let form = [("assertion", assertion), ("authenticator", stored.identifier)]
    return try await revoking(stored, of: account) { () async throws(TokenServerError) in
      try await requestSession(of: account, with: stored.identifier, grant: Grant.biometric, form: form)
    }
  }

  package func revoke(_ authenticator: String, of id: AccountID, because why: String) {
    guard let account = try? self.account(id), let stored = account.registered(authenticator) else { return }
    let key = try? key(of: stored, account)
    unlocked.remove(unlockedName(of: stored, account))
    do { try forget(stored, of: account, because: why) } catch {
      environment.report(.trouble(id, "\(authenticator) could not be removed: \(error)"))
    }
    guard let key else { return }
    Task { await endRegistration(of: stored, by: key, account) }
  }

  /// Deregisters an authenticator at the server that is no longer registered here. Its own key is the only proof of the
  /// user that there is.
  private func endRegistration(of stored: StoredAuthenticator, by key: KnowledgeKey, _ account: Account) async {
    do {
      let session = try await logIn(with: stored, by: key, of: account)
      try await endRegistration(of: stored.identifier, account, in: session)
      try await client.revoke(session.accessToken)
    } catch {
      environment.report(
        .trouble(account.id, "the token server was not notified that \(stored.identifier) is revoked: \(error)"))
    }
  }
}
