// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import Foundation
package import OpenPGP
import ReferenceProtocol
package import Secrets

/// A device client made of the wire types and `curl`, sufficient to enroll and answer, without code of the token. Each
/// instance belongs to one test.
package final class DeviceClient: @unchecked Sendable {
  package let server: TokenServerProcess
  package let key: P256PrivateKey
  package let openPGP: OpenPGPKey
  package var clientID = ""
  package var profileID = "PROF01"
  package var userToken: String?
  package var deviceToken: String?
  package var nonce: String?
  package var serverCertificate: OpenPGPCertificate?
  package var keyID = ""
  /// `RT`. A real token stores it only encrypted with a PIN-derived key.
  package var refreshToken: SecretBytes?
  package var pinNonce: String?
  /// The number of retries in the last exchange.
  package private(set) var retries = 0

  /// - Parameter key: the key of a registered device; nil creates a new one.
  package init(_ server: TokenServerProcess, key: P256PrivateKey? = nil) throws {
    self.server = server
    self.key = try key ?? P256PrivateKey()
    openPGP = try OpenPGPKey.generate(userID: "device")
  }

  /// The same device at another server, which has a copy of the first server's data.
  package init(_ other: DeviceClient, at server: TokenServerProcess) {
    self.server = server
    (key, openPGP, clientID, profileID) = (other.key, other.openPGP, other.clientID, other.profileID)
    (userToken, deviceToken, nonce) = (other.userToken, other.deviceToken, nil)
    (serverCertificate, keyID) = (other.serverCertificate, other.keyID)
    (refreshToken, pinNonce) = (other.refreshToken, other.pinNonce)
  }

  /// A client that is registered and activated, has exchanged keys, and is enrolled for push.
  package static func enrolled(at server: TokenServerProcess, as user: String, profile: String = "PROF01") throws
    -> DeviceClient
  {
    let device = try DeviceClient(server)
    device.profileID = profile
    let code = try server.activationCode(for: user)
    try device.register(code).expect(201)
    try device.activate(code).expect(200)
    try device.exchangeKeys().expect(200)
    try device.acknowledgeKeys().expect(204)
    try device.enrollForPush().expect(200)
    try device.logIn().expect(200)
    return device
  }

  /// - Parameter source: the address of this machine from which to connect; nil for the usual one.
  @discardableResult
  package func register(
    _ credential: String, headers: [String] = [], boardSerial: String? = nil, from source: String? = nil
  ) throws -> Curl.Reply {
    let (arguments, input) = registration(credential, headers: headers, boardSerial: boardSerial)
    let reply = try server.curl((source.map { ["--interface", $0] } ?? []) + arguments, input: input)
    if reply.status == 201 { clientID = try reply.decoded(RegistrationResponse.self).clientID }
    return reply
  }

  /// The curl command of a registration.
  package func registration(
    _ credential: String, headers: [String] = [], boardSerial: String? = nil
  ) -> Curl.Command {
    let registration = RegistrationRequest(
      clientName: "Test device", softwareID: "approval-token", softwareVersion: "1.0.0", key: JWK(key.publicKey),
      capabilities: .init(display: .none, keypad: false, button: true, led: .mono), boardSerial: boardSerial)
    let all = ["Authorization: Bearer \(credential)", "Content-Type: application/json"] + headers
    return (all.flatMap { ["--header", $0] } + [server.url + "/oauth/register"], JSON.encode(registration))
  }

  @discardableResult
  package func activate(_ code: String) throws -> Curl.Reply {
    let reply = try token([
      "grant_type=\(Grant.preAuthorizedCode)", "pre-authorized_code=\(code)", "profile_id=\(profileID)",
    ])
    if reply.status == 200 { userToken = try reply.decoded(AccessTokenResponse.self).accessToken }
    return reply
  }

  @discardableResult
  package func logIn() throws -> Curl.Reply {
    let reply = try token(["grant_type=client_credentials"])
    if reply.status == 200 { deviceToken = try reply.decoded(AccessTokenResponse.self).accessToken }
    return reply
  }

  /// Calls the token endpoint; retries if it requires a nonce.
  @discardableResult
  package func token(_ fields: [String], path: String = "/oauth/token", now: Int64? = nil) throws -> Curl.Reply {
    func attempt() throws -> Curl.Reply {
      let reply = try server.curl(tokenArguments(fields, path: path, now: now))
      nonce = reply.headers["dpop-nonce"]
      return reply
    }
    let reply = try attempt()
    guard reply.json["error"] as? String == OAuthError.useDPoPNonce else { return reply }
    return try attempt()
  }

  /// The curl command line of one call of the token endpoint.
  package func tokenArguments(_ fields: [String], path: String = "/oauth/token", now: Int64? = nil) throws -> [String] {
    let url = server.url + path
    let now = now ?? Int64(Date().timeIntervalSince1970)
    let assertion = try ClientAssertion.make(clientID: clientID, audience: server.url, now: now, key: key)
    let proof = try DPoPProof.make(method: "POST", url: url, nonce: nonce, accessToken: nil, issuedAt: now, key: key)
    let form = fields + ["client_assertion_type=\(Grant.clientAssertionType)", "client_assertion=\(assertion)"]
    return ["--header", "DPoP: \(proof)"] + form.flatMap { ["--data-urlencode", $0] } + [url]
  }

  /// Calls the device API; retries if it requires a nonce.
  @discardableResult
  package func call(
    _ method: String, _ path: String, body: (any Encodable)? = nil, token: String? = nil, headers: [String] = []
  ) throws -> Curl.Reply {
    let bytes = body.map { JSON.encode($0) }
    func attempt() throws -> Curl.Reply {
      let arguments = try arguments(method, path, token: token, headers: headers)
      let reply = try server.curl(arguments, input: bytes)
      nonce = reply.headers["dpop-nonce"] ?? nonce
      return reply
    }
    let reply = try attempt()
    guard reply.headers["www-authenticate"]?.contains(OAuthError.useDPoPNonce) == true else { return reply }
    retries += 1
    return try attempt()
  }

  /// The curl command line of one call.
  package func arguments(_ method: String, _ path: String, token: String? = nil, headers: [String] = []) throws
    -> [String]
  {
    let url = server.url + path
    let token = token ?? deviceToken ?? userToken ?? ""
    let proof = try DPoPProof.make(
      method: method, url: url, nonce: nonce, accessToken: token, issuedAt: 0, key: key)
    let all = ["Authorization: DPoP \(token)", "DPoP: \(proof)", "Content-Type: application/json"] + headers
    return ["--request", method] + all.flatMap { ["--header", $0] } + [url]
  }
}

extension Curl.Reply {
  package func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value { try JSON.decode(type, from: body) }

  @discardableResult
  package func expect(_ status: Int) throws -> Curl.Reply {
    guard self.status == status else {
      throw Curl.CurlError(description: "HTTP \(self.status) instead of \(status): \(text)")
    }
    return self
  }
}
