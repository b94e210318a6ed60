// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import HTTP
import MobileAuth
import OpenPGP
import ReferenceProtocol
import RelayProtocol
import Secrets
import Synchronization
import TokenDaemon

@testable import ReferenceAdapter

/// An attacker between a token and its server while an account is enrolled: replaces keys with keys of its own.
final class ManInTheMiddle: Sendable {
  /// What is exchanged in an enrollment.
  enum Value: CaseIterable, Sendable {
    /// The device's P-256 key, in its registration.
    case deviceKey
    /// The certificate to which the server encrypts the refresh token.
    case ephemeralCertificate
    /// The account's OpenPGP certificate.
    case accountCertificate
    /// The server's OpenPGP certificate with its fingerprint.
    case serverCertificate
    /// The fingerprint alone.
    case serverFingerprint
  }

  private struct Seen {
    var trust = ServerTrust()
    var issuer = ""
    var clientID = ""
    var profile = ""
    /// The certificates of the token, and of its server.
    var ephemeral: OpenPGPCertificate?
    var server: OpenPGPCertificate?
    var keyID = ""
    var refreshToken: SecretBytes?
    var isSilent = false
  }

  private let replaced: Set<Value>
  /// Whether it also replaces what proves the possession of the replaced keys, so that neither side notices.
  private let isThorough: Bool
  /// The path of the real network process.
  private let network: String
  private let deviceKey: P256PrivateKey
  /// In place of the account's key.
  private let account: OpenPGPKey
  /// In place of the server's key.
  private let server: OpenPGPKey
  private let seen = Mutex(Seen())

  init(replacing replaced: Set<Value>, thoroughly isThorough: Bool, through network: String) throws {
    (self.replaced, self.isThorough, self.network) = (replaced, isThorough, network)
    deviceKey = try P256PrivateKey()
    account = try OpenPGPKey.generate(userID: "attacker")
    server = try OpenPGPKey.generate(userID: "attacker")
  }

  /// The refresh token of the account, if the attacker has read it.
  var refreshToken: SecretBytes? { seen.withLock { $0.refreshToken } }

  /// From now on the token gets no answer.
  func silence() { seen.withLock { $0.isSilent = true } }

  func treat(_ bytes: [UInt8]) -> HostileNetwork.Treatment {
    guard !seen.withLock({ $0.isSilent }), let order = try? RelayOrder(bytes) else { return .unanswered }
    switch order {
    case .send(let request, let trust):
      return .answered { [self] in
        seen.withLock { $0.trust = trust.serverTrust(authorityFile: nil) }
        return try forged(try await http.send(try forged(request)), to: request)
      }
    case .stream(let request, let trust):
      guard let request = try? signed(request) else { return .unanswered }
      return .passed(RelayOrder.stream(request, trust).bytes)
    default: return .passed(bytes)
    }
  }

  private var http: any HTTPTransport {
    RelayHTTPTransport(trust: seen.withLock { $0.trust }, through: Relay(path: network, patience: .seconds(30)))
  }

  // MARK: Requests

  private func forged(_ request: HTTPRequest) throws -> HTTPRequest {
    var request = try signed(request)
    let path = Self.path(of: request)
    if path == "/oauth/register", replaced.contains(.deviceKey) {
      var registration = try JSON.decode(RegistrationRequest.self, from: request.body)
      registration.jwks = JWKSet(keys: [JWK(deviceKey.publicKey)])
      request.body = JSON.encode(registration)
    } else if path == "/oauth/token" {
      request.body = try forgedForm(request.body)
    } else if path.hasSuffix("/mobile-auth"), request.method == .put, replaced.contains(.accountCertificate) {
      request.body = JSON.encode(KeyExchangeRequest(openPGPCertificate: account.certificate.bytes.base64))
    } else if path.hasSuffix("/mobile-auth/ack"), isThorough {
      request.body = try acknowledgement()
    }
    return request
  }

  /// With proofs of possession of the attacker's device key.
  private func signed(_ request: HTTPRequest) throws -> HTTPRequest {
    guard isThorough, replaced.contains(.deviceKey), let proof = request.headers["DPoP"] else { return request }
    struct Header: Encodable {
      let typ = "dpop+jwt"
      let alg = "ES256"
      let jwk: JWK
    }
    var request = request
    request.headers["DPoP"] = try JWS.sign(
      header: JSON.encode(Header(jwk: JWK(deviceKey.publicKey))),
      payload: JWS.Unverified(parsing: proof).untrustedPayload, key: deviceKey)
    return request
  }

  private func forgedForm(_ body: [UInt8]) throws -> [UInt8] {
    let members = try String(decoding: body, as: UTF8.self).split(separator: "&").map { member in
      let name = String(member.prefix { $0 != "=" })
      let value = member.dropFirst(name.count + 1).removingPercentEncoding ?? ""
      return "\(name)=" + (try forged(name, value).addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
    }
    return Array(members.joined(separator: "&").utf8)
  }

  private func forged(_ name: String, _ value: String) throws -> String {
    if name == "client_assertion", replaced.contains(.deviceKey), isThorough {
      let assertion = try JWS.Unverified(parsing: value)
      return try JWS.sign(header: assertion.header, payload: assertion.untrustedPayload, key: deviceKey)
    }
    if name == "profile_id" { seen.withLock { $0.profile = value } }
    guard name == "ephemeral_certificate", replaced.contains(.ephemeralCertificate) else { return value }
    let ephemeral = try OpenPGPCertificate(parsing: bytes(base64: value) ?? [])
    seen.withLock { $0.ephemeral = ephemeral }
    return account.certificate.bytes.base64
  }

  private func acknowledgement() throws -> [UInt8] {
    let seen = seen.withLock { $0 }
    guard let certificate = seen.server else { throw HTTPTransportError.canceled }
    let content = KeyAcknowledgementContent(clientID: seen.clientID, profileID: seen.profile, keyID: seen.keyID)
    return JSON.encode(KeyAcknowledgement(proof: try account.seal(JSON.encode(content), to: certificate).base64))
  }

  // MARK: Responses

  private func forged(_ response: HTTPResponse, to request: HTTPRequest) throws -> HTTPResponse {
    var response = response
    guard (200..<300).contains(response.status) else { return response }
    let path = Self.path(of: request)
    if path == "/oauth/register" {
      let clientID = try JSON.decode(RegistrationResponse.self, from: response.body).clientID
      let issuer = String(request.url.dropLast(path.count))
      seen.withLock { ($0.clientID, $0.issuer) = (clientID, issuer) }
    } else if path == "/oauth/token", isThorough, replaced.contains(.ephemeralCertificate) {
      response.body = try forgedToken(response.body)
    } else if path.hasSuffix("/mobile-auth") {
      response.body = try forgedKeys(response.body)
    }
    return response
  }

  private func forgedToken(_ body: [UInt8]) throws -> [UInt8] {
    var token = try JSON.decode(AccessTokenResponse.self, from: body)
    guard let sealed = token.sealedToken.flatMap(bytes(base64:)), let ephemeral = seen.withLock({ $0.ephemeral }),
      let certificate = token.serverCertificate.flatMap(bytes(base64:))
    else { return body }
    let secret = try account.open(sealed, from: OpenPGPCertificate(parsing: certificate), limit: 4096)
    seen.withLock { $0.refreshToken = SecretBytes(copying: secret) }
    token.sealedToken = try server.seal(secret, to: ephemeral).base64
    token.serverCertificate = server.certificate.bytes.base64
    return JSON.encode(token)
  }

  private func forgedKeys(_ body: [UInt8]) throws -> [UInt8] {
    var keys = try JSON.decode(KeyExchangeResponse.self, from: body)
    let certificate = try OpenPGPCertificate(parsing: bytes(base64: keys.serverCertificate) ?? [])
    seen.withLock { ($0.server, $0.keyID) = (certificate, keys.keyID) }
    if replaced.contains(.serverCertificate) { keys.serverCertificate = server.certificate.bytes.base64 }
    if !replaced.isDisjoint(with: [.serverCertificate, .serverFingerprint]) {
      keys.serverFingerprint = server.certificate.fingerprint
    }
    return JSON.encode(keys)
  }

  private static func path(of request: HTTPRequest) -> String {
    String(request.url.dropFirst("https://".count).drop { $0 != "/" }.prefix { $0 != "?" })
  }

  // MARK: What it can do then

  /// Approves a request at the server in the name of the token, without the user.
  func approve(_ transaction: String) async throws {
    let seen = seen.withLock { $0 }
    guard let certificate = seen.server else { throw HTTPTransportError.canceled }
    let client = DeviceClient(
      issuer: seen.issuer, clientID: seen.clientID, key: deviceKey, http: http, in: .system())
    let path = "/requests/\(transaction)"
    let message = try JSON.decode(
      SealedRequest.self, from: try await client.call(.get, path + "/message").body
    ).message
    let plaintext = try account.open(bytes(base64: message) ?? [], from: certificate, limit: 1 << 20)
    let request = try JSON.decode(ApprovalRequest.self, from: plaintext)
    let digest = SHA256.hash(plaintext)
    var answer = ApprovalAnswer(
      aud: request.iss, clientID: seen.clientID, profileID: seen.profile, transactionID: transaction,
      requestSHA256: digest.base64URL, nonce: request.nonce, attempt: request.attempt ?? 1, decision: .accept,
      reason: nil, methodUsed: request.method, gesture: .init(kind: .hold, heldMs: 1000), answeredAfterMs: 2000)
    if request.method == .pushWithPIN, let token = seen.refreshToken {
      let key = try KnowledgeKey(refreshToken: token, clientID: seen.clientID, profileID: seen.profile)
      let nonce = bytes(base64URL: request.nonce) ?? []
      answer.pinProof = try key.proof(ApprovalClaim(nonce: nonce, requestSHA256: digest, decision: .accept)).base64URL
    }
    let sealed = SealedAnswer(answer: try account.seal(JSON.encode(answer), to: certificate).base64)
    _ = try await client.call(
      .post, path + "/answers", body: JSON.encode(sealed), headers: ["Idempotency-Key": Random.uuid()])
  }
}
