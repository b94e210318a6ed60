// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
package import MobileAuth
import OpenPGP
import ReferenceProtocol
package import Secrets
package import ServerBackends

/// Registration, deregistration and use of authenticators other than the PIN.
extension ReferenceServerClient {
  package func register(
    _ authenticator: String, with code: EnteredDigits, in session: UserSession
  ) async throws(TokenServerError) {
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
    let path = "/profiles/\(account.profile)/authenticators/\(authenticator)/registrations"
    let ephemeral = try Self.ephemeralKey()
    let body = JSON.encode(
      AuthenticatorRegistrationRequest(
        assertion: nil, ephemeralCertificate: ephemeral.certificate.bytes.base64, data: code.data.base64))
    let headers: HTTPHeaders = ["Idempotency-Key": environment.makeUUID()]
    let reply = try await repeating { [client] () async throws(TokenServerError) in
      try await client.call(.post, path, body: body, headers: headers, as: .user(session.accessToken))
    }
    let registration = try DeviceClient.decode(AuthenticatorRegistration.self, reply)
    guard registration.registrationID.isUUID else {
      throw .unreachable("the token server's \"registration_id\" is no UUID")
    }
    let token = try Self.openToken(registration.sealedToken, by: account.serverCertificate, with: ephemeral)
    let new = StoredAuthenticator(identifier: authenticator, token: token, registration: nil)
    // Stored before the server accepts it: after a crash, the server is asked whether it has.
    try store(new, of: account, registration: registration.registrationID)
    try await activate(new, registration.registrationID, of: account)
    try store(new, of: account, registration: nil, .authenticatorRegistered)
  }

  private func activate(
    _ authenticator: StoredAuthenticator, _ registration: String, of account: Account
  ) async throws(TokenServerError) {
    let path =
      "/profiles/\(account.profile)/authenticators/\(authenticator.identifier)/registrations/\(registration)/activation"
    let assertion = try await client.assertion(
      by: key(of: authenticator, account), for: account.profile, path: path, nonce: registration,
      authenticator: authenticator.identifier)
    let body = JSON.encode(AuthenticatorActivation(assertion: assertion))
    _ = try await repeating { [client] () async throws(TokenServerError) in
      try await client.call(.post, path, body: body)
    }
  }

  package func deregister(
    _ authenticator: String, in session: UserSession
  ) async throws(TokenServerError) -> Bool {
    let account = try self.account(session.account)
    var isNotified = true
    do { try await endRegistration(of: authenticator, account, in: session) } catch {
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

  private func endRegistration(
    of authenticator: String, _ account: Account, in session: UserSession
  ) async throws(TokenServerError) {
    let path = "/profiles/\(account.profile)/authenticators/\(authenticator)/deregistration"
    let body = JSON.encode(AuthenticatorDeregistration())
    _ = try await repeating { [client] () async throws(TokenServerError) in
      try await client.call(.post, path, body: body, as: .user(session.accessToken))
    }
  }

  package func logIn(
    _ id: AccountID, with authenticator: String, code: EnteredDigits
  ) async throws(TokenServerError) -> UserSession {
    let account = try self.account(id)
    guard let stored = account.registered(authenticator) else {
      throw .authenticatorRefused(
        number: Problem.Slug.authenticatorNotRegistered.code, "authenticator \(authenticator) is not registered")
    }
    let data = code.data
    let assertion = try await client.assertion(
      by: key(of: stored, account), for: account.profile,
      audience: ServerMetadata(issuer: client.issuer).tokenEndpoint, authenticator: authenticator,
      dataSHA256: SHA256.hash(data).base64URL)
    let form = [("assertion", assertion), ("authenticator", authenticator), ("data", data.base64)]
    return try await revoking(stored, of: account) { () async throws(TokenServerError) in
      try await requestSession(of: account, grant: Grant.customAuthenticator, form: form)
    }
  }

  /// Makes a call with an authenticator. Forgets it if the server has deregistered it.
  func revoking<Result: Sendable>(
    _ authenticator: StoredAuthenticator, of account: Account, _ call: () async throws(TokenServerError) -> Result
  ) async throws(TokenServerError) -> Result {
    do { return try await call() } catch {
      if case .authenticatorFailed(let failure) = error, failure.isRevoked {
        try forget(authenticator, of: account, because: failure.reason)
      }
      throw error
    }
  }

  func key(of authenticator: StoredAuthenticator, _ account: Account) throws(TokenServerError) -> KnowledgeKey {
    do {
      return try KnowledgeKey(
        refreshToken: authenticator.token, clientID: clientID, profileID: account.profile,
        authenticator: authenticator.identifier)
    } catch { throw .refused("the key of authenticator \(authenticator.identifier) cannot be used: \(error)") }
  }
}

extension EnteredDigits {
  /// The digits as the server's script gets them, in ASCII. They leave locked memory, because they are sent.
  var data: [UInt8] { bytes.withExposedSecret { Array($0) } }
}
