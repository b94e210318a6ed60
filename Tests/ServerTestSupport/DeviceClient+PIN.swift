// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import OpenPGP
package import ReferenceProtocol
package import Secrets

/// PIN operations. In these tests the refresh token represents the correct PIN, and another refresh token a wrong one.
extension DeviceClient {
  /// As `enrolled`, at a server with PINs.
  package static func enrolledWithPIN(at server: TokenServerProcess, as user: String, profile: String = "PROF01") throws
    -> DeviceClient
  {
    let device = try DeviceClient(server)
    device.profileID = profile
    let code = try server.activationCode(for: user)
    try device.register(code).expect(201)
    try device.finishEnrollment(with: code)
    return device
  }

  /// Another user on the same device.
  package func secondUser(_ user: String, profile: String) throws -> DeviceClient {
    let other = try DeviceClient(server, key: key)
    (other.clientID, other.profileID) = (clientID, profile)
    try other.finishEnrollment(with: server.activationCode(for: user))
    return other
  }

  private func finishEnrollment(with code: String) throws {
    try activateForPIN(code).expect(200)
    try activatePIN().expect(204)
    try exchangeKeys().expect(200)
    try acknowledgeKeys().expect(204)
    try enrollForPush().expect(200)
    try logIn().expect(200)
  }

  /// Sends the pre-authorized code with a certificate for the exchange; stores the refresh token and its nonce.
  @discardableResult
  package func activateForPIN(_ code: String) throws -> Curl.Reply {
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let reply = try token([
      "grant_type=\(Grant.preAuthorizedCode)", "pre-authorized_code=\(code)", "profile_id=\(profileID)",
      "ephemeral_certificate=\(ephemeral.certificate.bytes.base64)",
    ])
    guard reply.status == 200 else { return reply }
    let response = try reply.decoded(AccessTokenResponse.self)
    userToken = response.accessToken
    if let sealed = response.sealedToken, let certificate = response.serverCertificate {
      let signer = try OpenPGPCertificate(parsing: bytes(base64: certificate)!)
      refreshToken = SecretBytes(copying: try ephemeral.open(bytes(base64: sealed)!, from: signer))
      pinNonce = response.pinNonce
    }
    return reply
  }

  private var profileURL: String { "/device/v1/profiles/\(profileID)" }

  package func knowledgeKey(_ refreshToken: SecretBytes? = nil) throws -> KnowledgeKey {
    try KnowledgeKey(refreshToken: refreshToken ?? self.refreshToken!, clientID: clientID, profileID: profileID)
  }

  /// An assertion for a URL of the server.
  package func assertion(
    _ path: String, _ refreshToken: SecretBytes? = nil, identifier: String = Random.uuid(), nonce: String? = nil,
    change: (inout KnowledgeAssertion.Claims) -> Void = { _ in }
  ) throws -> String {
    var claims = KnowledgeAssertion.Claims(
      clientID: clientID, profileID: profileID, audience: server.url + path, identifier: identifier,
      now: Int64(Date().timeIntervalSince1970), nonce: nonce)
    change(&claims)
    return try knowledgeKey(refreshToken).assertion(claims)
  }

  @discardableResult
  package func activatePIN(_ assertion: String? = nil) throws -> Curl.Reply {
    let assertion = try assertion ?? self.assertion(profileURL + "/pin", nonce: pinNonce)
    return try call("POST", profileURL + "/pin", body: PINActivation(assertion: assertion), token: userToken)
  }

  /// Logs in with the PIN; the reply has a user access token if the PIN is correct.
  @discardableResult
  package func logInWithPIN(_ refreshToken: SecretBytes? = nil, assertion: String? = nil) throws -> Curl.Reply {
    let reply = try token(loginForm(refreshToken, assertion: assertion))
    if reply.status == 200 { userToken = try reply.decoded(AccessTokenResponse.self).accessToken }
    return reply
  }

  package func loginForm(_ refreshToken: SecretBytes? = nil, assertion: String? = nil) throws -> [String] {
    let assertion = try assertion ?? self.assertion("/oauth/token", refreshToken)
    return ["grant_type=\(Grant.jwtBearer)", "assertion=\(assertion)", "profile_id=\(profileID)"]
  }

  /// - Returns: the reply, and its content if it was a `201`.
  package func beginPINChange(
    _ refreshToken: SecretBytes? = nil, assertion: String? = nil
  ) throws -> (reply: Curl.Reply, change: (id: String, refreshToken: SecretBytes)?) {
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let path = profileURL + "/pin-changes"
    let reply = try call(
      "POST", path,
      body: PINChangeRequest(
        assertion: try assertion ?? self.assertion(path, refreshToken),
        ephemeralCertificate: ephemeral.certificate.bytes.base64), token: userToken)
    guard reply.status == 201 else { return (reply, nil) }
    let change = try reply.decoded(PINChange.self)
    let opened = try ephemeral.open(bytes(base64: change.sealedToken)!, from: serverCertificate!)
    return (reply, (change.changeID, SecretBytes(copying: opened)))
  }

  @discardableResult
  package func commitPINChange(_ id: String, _ refreshToken: SecretBytes, assertion: String? = nil) throws -> Curl.Reply
  {
    let path = "\(profileURL)/pin-changes/\(id)/commit"
    let assertion = try assertion ?? self.assertion(path, refreshToken, nonce: id)
    return try call("POST", path, body: PINChangeCommit(assertion: assertion))
  }

  package func pinChangeState(_ id: String) throws -> PINChangeStatus.State {
    try call("GET", "\(profileURL)/pin-changes/\(id)").expect(200).decoded(PINChangeStatus.self).state
  }

  /// The profile's counts in the response to a validation.
  package func failureCounts() throws -> ProfileFailureCounts? {
    let validation = ValidationRequest(softwareVersion: "1.0.0", osVersion: "x", profiles: [profileID])
    return try call("POST", "/device/v1/validations", body: validation).expect(200)
      .decoded(ValidationResponse.self).failureCounts?.first
  }

  /// An approval with a PIN proof for a fetched request.
  /// - Parameters:
  ///   - nonce: the nonce in the response to a wrong PIN; nil for the request's own.
  ///   - change: makes the answer invalid.
  package func answerWithPIN(
    _ fetched: (bytes: [UInt8], request: ApprovalRequest), _ refreshToken: SecretBytes? = nil, attempt: Int = 1,
    nonce: String? = nil, change: (inout ApprovalAnswer) -> Void = { _ in }
  ) throws -> SealedAnswer {
    let nonce = nonce ?? fetched.request.nonce
    let hash = SHA256.hash(fetched.bytes)
    let claim = ApprovalClaim(nonce: bytes(base64URL: nonce)!, requestSHA256: hash, decision: .accept)
    var answer = ApprovalAnswer(
      aud: fetched.request.iss, clientID: clientID, profileID: profileID,
      transactionID: fetched.request.transactionID, requestSHA256: hash.base64URL, nonce: nonce, attempt: attempt,
      decision: .accept, reason: nil, methodUsed: fetched.request.method, gesture: .init(kind: .enter, heldMs: 0),
      answeredAfterMs: 1500)
    answer.pinProof = try knowledgeKey(refreshToken).proof(claim).base64URL
    change(&answer)
    return SealedAnswer(answer: try openPGP.seal(JSON.encode(answer), to: serverCertificate!).base64)
  }
}
