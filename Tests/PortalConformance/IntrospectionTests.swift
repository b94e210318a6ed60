// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// Token introspection (RFC 7662) for resource servers.
@Suite(.timeLimit(.minutes(5))) struct IntrospectionTests {
  let server: TokenServerProcess
  let device: DeviceClient
  let resourceServer: (id: String, secret: String)

  init() throws {
    server = try TokenServerProcess(configuration: configuration(PINTests.settings, types: PINTests.types))
    device = try DeviceClient.enrolledWithPIN(at: server, as: "alice")
    resourceServer = try server.addPortal("shop", "--introspection", "--no-mobile-authentication", "--no-end-user")
  }

  private func introspect(_ fields: String..., user: String? = nil) throws -> Curl.Reply {
    let form = fields.flatMap { ["--data-urlencode", $0] }
    let credentials = ["--user", user ?? "\(resourceServer.id):\(resourceServer.secret)"]
    let path = "/oauth/api/v2/token/introspect"
    return try checked(server.curl(credentials + form + [server.url + path]), "POST", path)
  }

  @Test("A user token says who, how, and which key") func userToken() throws {
    let issued = try device.logInWithPIN().expect(200).decoded(AccessTokenResponse.self)
    let reply = try introspect("token=\(issued.accessToken)", "token_type_hint=access_token").expect(200).json
    #expect(reply["active"] as? Bool == true)
    #expect(reply["sub"] as? String == "alice" && reply["profile_id"] as? String == "PROF01")
    #expect(reply["amr"] as? [String] == ["pin", "pop"] && reply["scope"] as? String == "user")
    #expect(reply["client_id"] as? String == device.clientID && reply["iss"] as? String == server.url)
    #expect(reply["token_type"] as? String == "DPoP" && reply["app_identifier"] as? String == "approval-token")
    #expect(reply["app_version"] as? String == "1.0.0" && reply["app_platform"] as? String == "linux")
    let confirmation = reply["cnf"] as? [String: any Sendable]
    #expect(confirmation?["jkt"] as? String == JWK(device.key.publicKey).thumbprint)
    let (issuedAt, expires) = (reply["iat"] as? Int ?? 0, reply["exp"] as? Int ?? 0)
    #expect(expires - issuedAt == 900)
    #expect(abs(Double(issuedAt) - Date().timeIntervalSince1970) < 120)
    #expect(reply["authenticator"] == nil)
  }

  private static let resource = "https://shop.example/orders"

  /// A proof of the device's key, or another one, for a call to a resource server.
  private func proof(
    _ token: String, method: String = "PUT", url: String = resource, nonce: String?, key: P256PrivateKey? = nil
  ) throws -> String {
    try DPoPProof.make(
      method: method, url: url, nonce: nonce, accessToken: token, issuedAt: 0, key: key ?? device.key)
  }

  private func introspect(call token: String, _ proof: String, url: String = resource + "?x=1") throws -> Curl.Reply {
    try introspect("token=\(token)", "htm=PUT", "htu=\(url)", "dpop=\(proof)")
  }

  @Test("The server verifies the proof of a call, which counts once") func proofVerified() throws {
    let token = try device.logInWithPIN().expect(200).decoded(AccessTokenResponse.self).accessToken
    let stale = try introspect(call: token, proof(token, nonce: nil)).expect(200).json
    #expect(stale["active"] as? Bool == false && stale["error"] as? String == "use_dpop_nonce")
    let nonce = try #require(stale["dpop_nonce"] as? String)
    let right = try proof(token, nonce: nonce)
    let reply = try introspect(call: token, right).expect(200).json
    #expect(reply["active"] as? Bool == true && reply["proof_verified"] as? Bool == true)
    #expect(reply["sub"] as? String == "alice" && reply["error"] == nil)
    #expect(try introspect(call: token, right).expect(200).text == #"{"active":false,"error":"invalid_dpop_proof"}"#)
    // Without a call, the resource server verifies the proof.
    #expect(try introspect("token=\(token)").expect(200).json["proof_verified"] == nil)
  }

  @Test("A call without a proof, or with one that is not its own, is not admitted") func proofRefused() throws {
    let token = try device.logInWithPIN().expect(200).decoded(AccessTokenResponse.self).accessToken
    let nonce = try #require(
      try introspect(call: token, proof(token, nonce: "x")).json["dpop_nonce"] as? String)
    let another = try P256PrivateKey()
    let wrong: [(String, String)] = [
      ("", "invalid_dpop_proof"), ("a.b.c", "invalid_dpop_proof"),
      (try proof(token, method: "GET", nonce: nonce), "invalid_dpop_proof"),
      (try proof(token, url: "https://other.example/orders", nonce: nonce), "invalid_dpop_proof"),
      (try proof("another", nonce: nonce), "invalid_dpop_proof"),
      (try proof(token, nonce: nonce, key: another), "invalid_token"),
    ]
    for (proof, error) in wrong {
      #expect(try introspect(call: token, proof).expect(200).text == #"{"active":false,"error":"\#(error)"}"#)
    }
    #expect(
      try introspect(call: "x", proof("x", nonce: nonce)).expect(200).text
        == #"{"active":false,"error":"invalid_token"}"#)
    // Which call it is must be said.
    #expect(try introspect("token=\(token)", "dpop=\(try proof(token, nonce: nonce))").status == 400)
  }

  @Test("A device token has no user, and an activation is a one-time code") func otherOrigins() throws {
    let ofDevice = try introspect("token=\(device.deviceToken ?? "")").expect(200).json
    #expect(ofDevice["amr"] as? [String] == ["pop"] && ofDevice["scope"] as? String == "device")
    #expect(ofDevice["sub"] == nil && ofDevice["profile_id"] == nil)
    #expect(try introspect("token=\(device.userToken ?? "")").json["amr"] as? [String] == ["otp", "pop"])
  }

  @Test("A token that is unknown, revoked, or whose user or device is gone is inactive and says no more")
  func inactive() throws {
    func isInactive(_ token: String?) throws -> Bool {
      try introspect("token=\(token ?? "")").expect(200).text == #"{"active":false}"#
    }
    #expect(try isInactive("x"))
    let other = try device.secondUser("bob", profile: "PROF02")
    try other.logInWithPIN().expect(200)
    #expect(try !isInactive(other.userToken))
    try other.token(["token=\(other.userToken ?? "")"], path: "/oauth/revoke").expect(200)
    #expect(try isInactive(other.userToken))
    try device.logInWithPIN().expect(200)
    try device.call("DELETE", "/device/v1/profiles/PROF01").expect(204)
    #expect(try isInactive(device.userToken))
    #expect(try !isInactive(device.deviceToken))
    try server.admin("device", "delete", device.clientID)
    #expect(try isInactive(device.deviceToken))
  }

  @Test("Only a client with the permission may ask, and must say about what") func permissions() throws {
    let (id, secret) = try server.addPortal("portal")
    #expect(try introspect("token=x", user: "\(id):\(secret)").status == 403)
    #expect(try introspect("token=x", user: "\(resourceServer.id):wrong").status == 401)
    #expect(try introspect("token_type_hint=x").status == 400)
    let form = ["token=x", "client_id=\(resourceServer.id)", "client_secret=\(resourceServer.secret)"]
    let inForm = try server.curl(
      form.flatMap { ["--data-urlencode", $0] } + [server.url + "/oauth/api/v2/token/introspect"])
    #expect(inForm.status == 200)
    let enabled = server.url + "/oauth/api/v4/authenticate/user/alice/enabled"
    #expect(try server.curl("--user", "\(resourceServer.id):\(resourceServer.secret)", enabled).status == 403)
  }

  @Test("A client that asks too often is slowed down") func rateLimit() throws {
    let server = try TokenServerProcess(configuration: configuration("[limits]\ndevice_requests_per_second = 1"))
    let (id, secret) = try server.addPortal("shop", "--introspection")
    let ask = ["--user", "\(id):\(secret)", "--data", "token=x", server.url + "/oauth/api/v2/token/introspect"]
    for _ in 1...2 { try server.curl(ask).expect(200) }
    // At the same time, as on a busy machine each may take longer than the second after which another one is allowed.
    let statuses = try server.curl.race(Array(repeating: (ask, nil), count: 40)).map(\.status)
    #expect(statuses.contains(429))
  }

  @Test("The metadata name the endpoint") func metadata() throws {
    let reply = try server.curl(server.url + ServerMetadata.path).expect(200)
    #expect(reply.json["introspection_endpoint"] as? String == server.url + "/oauth/api/v2/token/introspect")
  }
}
