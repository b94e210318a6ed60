// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
package import MobileAuth
import OpenPGP
import ReferenceProtocol
import Secrets
package import ServerBackends

/// Registration, deregistration and use of authenticators other than the PIN.
extension ReferenceServerClient {
  package func use(
    _ authenticator: String, of id: AccountID, for step: DriverCall.Step
  ) throws(TokenServerError) -> AuthenticatorUse {
    let account = try self.account(id)
    let identifier = environment.makeUUID()
    let purpose: AuthenticatorChallenge.Purpose =
      switch step {
      case .register: .registration
      case .authenticate: .login
      case .deregister: .deregistration
      }
    let challenge = AuthenticatorChallenge(
      for: purpose, issuer: client.issuer, clientID: clientID, profileID: account.profile,
      authenticator: authenticator, nonce: identifier)
    return AuthenticatorUse(
      account: id,
      call: DriverCall(
        step: step, server: AuthenticatorChallenge.host(ofIssuer: client.issuer), account: id.text,
        authenticator: authenticator, challenge: challenge.digest,
        registration: step == .register ? [] : account.registered(authenticator)?.driverData ?? []),
      identifier: identifier)
  }

  package func register(
    _ use: AuthenticatorUse, with data: AuthenticatorData, in session: UserSession
  ) async throws(TokenServerError) -> AuthenticatorInfo? {
    let authenticator = use.call.authenticator
    return try await register(use, in: session, data: data.sent.base64) { _, token, _ in
      StoredAuthenticator(
        identifier: authenticator, token: token, registration: nil, driverData: data.registration)
    }
  }

  /// - Parameters:
  ///   - assertion: of the PIN, for a biometric authenticator.
  ///   - data: for the script of a custom authenticator.
  ///   - stored: what to store of the token; called with the account and the ID of the registration.
  /// - Returns: the result of the server's script; nil without one.
  func register(
    _ use: AuthenticatorUse, in session: UserSession, assertion: String? = nil, data: String? = nil,
    _ stored: (Account, SecretBytes, String) throws(TokenServerError) -> StoredAuthenticator
  ) async throws(TokenServerError) -> AuthenticatorInfo? {
    let authenticator = use.call.authenticator
    let account = try self.account(session.account)
    let entries = try await synchronizeAuthenticators(of: account)
    // Registered earlier, and its key is lost here: the server would refuse another one.
    if entries.contains(where: { $0.identifier == authenticator && $0.registered }) {
      try await endRegistration(of: authenticator, account, in: session)
    }
    let known = try self.account(session.account).authenticators.filter { $0.identifier != authenticator }
    guard known.count < StoredAuthenticator.most else {
      throw .authenticatorRefused(
        number: Problem.Slug.authenticatorNotSupported.code, "the account has too many authenticators")
    }
    let path = Self.registrations(of: authenticator, account)
    let ephemeral = try Self.ephemeralKey()
    let body = JSON.encode(
      AuthenticatorRegistrationRequest(
        assertion: assertion, ephemeralCertificate: ephemeral.certificate.bytes.base64, data: data))
    let headers: HTTPHeaders = ["Idempotency-Key": use.identifier]
    let reply = try await attempting { [client] () async throws(TokenServerError) in
      try await client.call(.post, path, body: body, headers: headers, as: .user(session.accessToken))
    }
    let registration = try DeviceClient.decode(AuthenticatorRegistration.self, reply)
    guard registration.registrationID.isUUID else {
      throw .unreachable("the token server's \"registration_id\" is no UUID")
    }
    let token = try Self.openToken(registration.sealedToken, by: account.serverCertificate, with: ephemeral)
    let new = try stored(account, token, registration.registrationID)
    // Stored before the server accepts it: after a crash, the server is asked whether it has.
    try store(new, of: account, registration: registration.registrationID)
    try await activate(new, registration.registrationID, of: account)
    try store(new, of: account, registration: nil, .authenticatorRegistered)
    return registration.customInfo.map(AuthenticatorInfo.init)
  }

  /// The path of an authenticator's registrations.
  static func registrations(of authenticator: String, _ account: Account) -> String {
    "/profiles/\(account.profile)/authenticators/\(authenticator)/registrations"
  }

  private func activate(
    _ authenticator: StoredAuthenticator, _ registration: String, of account: Account
  ) async throws(TokenServerError) {
    let path =
      "\(Self.registrations(of: authenticator.identifier, account))/\(registration)/activation"
    let assertion = try await client.assertion(
      by: key(of: authenticator, account), for: account.profile, path: path, nonce: registration,
      authenticator: authenticator.identifier)
    let body = JSON.encode(AuthenticatorActivation(assertion: assertion))
    _ = try await repeating { [client] () async throws(TokenServerError) in
      try await client.call(.post, path, body: body)
    }
  }

  package func deregister(
    _ authenticator: String, with data: AuthenticatorData?, in session: UserSession
  ) async throws(TokenServerError) -> Bool {
    let account = try self.account(session.account)
    var isNotified = true
    do { try await endRegistration(of: authenticator, account, with: data, in: session) } catch {
      guard error.effect == .retry else { throw error }
      isNotified = false
    }
    if let stored = account.authenticators.first(where: { $0.identifier == authenticator }) {
      let detail = isNotified ? authenticator : "\(authenticator), only on this token (9028)"
      try remove(
        stored, of: account,
        environment.auditEntry(.authenticatorDeregistered, account: account.id, detail: detail))
    }
    return isNotified
  }

  func endRegistration(
    of authenticator: String, _ account: Account, with data: AuthenticatorData? = nil, in session: UserSession
  ) async throws(TokenServerError) {
    let path = "/profiles/\(account.profile)/authenticators/\(authenticator)/deregistration"
    let body = JSON.encode(AuthenticatorDeregistration(data: data?.sent.base64))
    _ = try await repeating { [client] () async throws(TokenServerError) in
      try await client.call(.post, path, body: body, as: .user(session.accessToken))
    }
  }

  package func logIn(
    with use: AuthenticatorUse, data: AuthenticatorData
  ) async throws(TokenServerError) -> UserSession {
    let authenticator = use.call.authenticator
    let account = try self.account(use.account)
    guard let stored = account.registered(authenticator) else {
      throw .authenticatorRefused(
        number: Problem.Slug.authenticatorNotRegistered.code, "authenticator \(authenticator) is not registered")
    }
    guard stored.kind == .custom else { return try await logIn(with: stored, of: account) }
    let data = data.sent
    let assertion = try await client.assertion(
      by: key(of: stored, account), for: account.profile,
      audience: ServerMetadata(issuer: client.issuer).tokenEndpoint, identifier: use.identifier,
      authenticator: authenticator, dataSHA256: SHA256.hash(data).base64URL)
    let form = [("assertion", assertion), ("authenticator", authenticator), ("data", data.base64)]
    return try await revoking(stored, of: account) { () async throws(TokenServerError) in
      try await requestSession(of: account, with: authenticator, grant: Grant.customAuthenticator, form: form)
    }
  }

  /// Makes a call with an authenticator. Forgets it if the server has deregistered it.
  func revoking<Result: Sendable>(
    _ authenticator: StoredAuthenticator, of account: Account, _ call: () async throws(TokenServerError) -> Result
  ) async throws(TokenServerError) -> Result {
    do { return try await call() } catch {
      if case .authenticatorFailed(let failure) = error, failure.isRevoked {
        try forget(authenticator, of: account, because: failure.reason, failure.info)
      }
      throw error
    }
  }

  /// - Throws: `.authenticatorRefused` for a fingerprint that waits for the PIN.
  func key(of authenticator: StoredAuthenticator, _ account: Account) throws(TokenServerError) -> KnowledgeKey {
    let token = try token(of: authenticator, account)
    do {
      return try KnowledgeKey(
        refreshToken: token, clientID: clientID, profileID: account.profile,
        authenticator: authenticator.identifier)
    } catch { throw .refused("the key of authenticator \(authenticator.identifier) cannot be used: \(error)") }
  }
}

extension AuthenticatorData {
  /// The bytes as the server gets them. They leave locked memory, because they are sent.
  var sent: [UInt8] { bytes.withExposedSecret { Array($0) } }
}
