// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
package import OpenPGP
package import ReferenceProtocol
package import Secrets

/// Authenticators other than the PIN. In these tests a refresh token represents the right finger or badge.
extension DeviceClient {
  /// Announces what the device can use now.
  package func announce(
    biometric: [String] = [], custom: [String] = [], display: ApprovalCapabilities.Display = .none,
    readBack: Bool? = nil
  ) throws {
    var capabilities = ApprovalCapabilities(
      display: display, keypad: true, button: true, led: .rgb, biometric: biometric, custom: custom)
    capabilities.readBack = readBack
    try call(
      "POST", "/device/v1/validations",
      body: ValidationRequest(
        softwareVersion: "1.0.0", osVersion: "x", profiles: [profileID], approvalCapabilities: capabilities)
    ).expect(200)
  }

  package func authenticatorPath(_ id: String) -> String { "/device/v1/profiles/\(profileID)/authenticators/\(id)" }

  package func authenticators() throws -> [AuthenticatorEntry] {
    try call("GET", "/device/v1/profiles/\(profileID)/authenticators").expect(200).decoded(AuthenticatorList.self)
      .authenticators
  }

  package func authenticatorKey(_ id: String, _ token: SecretBytes) throws -> KnowledgeKey {
    try KnowledgeKey(refreshToken: token, clientID: clientID, profileID: profileID, authenticator: id)
  }

  /// An assertion signed by the key of an authenticator.
  package func assertion(
    _ path: String, by id: String, _ token: SecretBytes, data: [UInt8]? = nil, identifier: String = Random.uuid(),
    nonce: String? = nil, change: (inout KnowledgeAssertion.Claims) -> Void = { _ in }
  ) throws -> String {
    var claims = KnowledgeAssertion.Claims(
      clientID: clientID, profileID: profileID, audience: server.url + path, identifier: identifier,
      now: Int64(Date().timeIntervalSince1970), nonce: nonce, authenticator: id,
      dataSHA256: data.map { SHA256.hash($0).base64URL })
    change(&claims)
    return try authenticatorKey(id, token).assertion(claims)
  }

  /// The body of a registration, with an assertion of the PIN.
  package func registrationBody(
    _ id: String, data: [UInt8]? = nil, pin: SecretBytes? = nil, ephemeral: OpenPGPKey
  ) throws -> AuthenticatorRegistrationRequest {
    AuthenticatorRegistrationRequest(
      assertion: try assertion(authenticatorPath(id) + "/registrations", pin),
      ephemeralCertificate: ephemeral.certificate.bytes.base64, data: data?.base64)
  }

  package func beginRegistration(
    _ id: String, _ body: AuthenticatorRegistrationRequest, key: String = Random.uuid()
  ) throws -> Curl.Reply {
    try call(
      "POST", authenticatorPath(id) + "/registrations", body: body, token: userToken,
      headers: ["Idempotency-Key: \(key)"])
  }

  /// - Returns: the authenticator's refresh token.
  package func open(_ registration: AuthenticatorRegistration, with ephemeral: OpenPGPKey) throws -> SecretBytes {
    let signer = try OpenPGPCertificate(parsing: bytes(base64: registration.serverCertificate)!)
    return SecretBytes(copying: try ephemeral.open(bytes(base64: registration.sealedToken)!, from: signer))
  }

  @discardableResult
  package func activateRegistration(_ id: String, _ registrationID: String, _ token: SecretBytes) throws -> Curl.Reply {
    let path = authenticatorPath(id) + "/registrations/\(registrationID)/activation"
    let assertion = try assertion(path, by: id, token, nonce: registrationID)
    return try call("POST", path, body: AuthenticatorActivation(assertion: assertion))
  }

  package func registrationState(
    _ id: String, _ registrationID: String
  ) throws -> AuthenticatorRegistrationStatus.State {
    try call("GET", authenticatorPath(id) + "/registrations/\(registrationID)").expect(200)
      .decoded(AuthenticatorRegistrationStatus.self).state
  }

  /// Registers an authenticator completely, as the logged-in user.
  /// - Returns: its refresh token.
  package func registerAuthenticator(_ id: String, data: [UInt8]? = nil) throws -> SecretBytes {
    try logInWithPIN().expect(200)
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let registration = try beginRegistration(id, registrationBody(id, data: data, ephemeral: ephemeral)).expect(201)
      .decoded(AuthenticatorRegistration.self)
    let token = try open(registration, with: ephemeral)
    try activateRegistration(id, registration.registrationID, token).expect(204)
    return token
  }

  @discardableResult
  package func logIn(
    with id: String, _ token: SecretBytes, data: [UInt8]? = nil, assertion: String? = nil
  ) throws -> Curl.Reply {
    let assertion = try assertion ?? self.assertion("/oauth/token", by: id, token, data: data)
    let grant = data == nil ? Grant.biometric : Grant.customAuthenticator
    let reply = try self.token(
      ["grant_type=\(grant)", "assertion=\(assertion)", "profile_id=\(profileID)", "authenticator=\(id)"]
        + (data.map { ["data=\($0.base64)"] } ?? []))
    if reply.status == 200 { userToken = try reply.decoded(AccessTokenResponse.self).accessToken }
    return reply
  }

  /// An approval with an authenticator for a fetched request.
  package func answer(
    _ fetched: (bytes: [UInt8], request: ApprovalRequest), with id: String, _ token: SecretBytes,
    data: [UInt8]? = nil, attempt: Int = 1, nonce: String? = nil, change: (inout ApprovalAnswer) -> Void = { _ in }
  ) throws -> SealedAnswer {
    let nonce = nonce ?? fetched.request.nonce
    let hash = SHA256.hash(fetched.bytes)
    let claim = AuthenticatorClaim(
      nonce: bytes(base64URL: nonce)!, requestSHA256: hash, decision: .accept, authenticator: id, data: data ?? [])
    return try answerWithPIN(fetched, attempt: attempt, nonce: nonce) { answer in
      answer.pinProof = nil
      answer.gesture = .init(kind: data == nil ? .finger : .authenticator, heldMs: 0)
      answer.authenticator = id
      answer.authenticatorProof = try? authenticatorKey(id, token).proof(claim).base64URL
      answer.customData = data?.base64
      change(&answer)
    }
  }

  /// An approval with the PIN for a request that asks for another authenticator.
  package func answerWithFallback(
    _ fetched: (bytes: [UInt8], request: ApprovalRequest), _ pin: SecretBytes? = nil, attempt: Int = 1,
    nonce: String? = nil
  ) throws -> SealedAnswer {
    try answerWithPIN(fetched, pin, attempt: attempt, nonce: nonce) { answer in
      answer.methodUsed = .pushWithPIN
      answer.fallbackFrom = fetched.request.method
    }
  }
}
