// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Token introspection (RFC 7662): a resource server that received an access token asks whether it is valid, whose it
/// is, and how the user authenticated. With the DPoP proof (RFC 9449) of the call that it received, the resource server
/// leaves the verification to this server; without, it verifies the proof with the key thumbprint of the response.
struct IntrospectionRoutes: Sendable {
  let gate: PortalGate
  let device: DeviceGate
  let origin: Origin
  let clock: ServerClock
  let application: ServerConfiguration.Application
  /// The platform name that portals receive.
  let platform: String
  /// Counts the invalid tokens of each API client.
  let limiter: RateLimiter

  func add(to router: Router<ServerContext>) {
    router.post("/oauth/api/v2/token/introspect") { request, _ in try await introspect(request) }
  }

  private func introspect(_ request: Request) async throws -> Response {
    let form = try await request.form()
    let client = try await gate.admit(request, form: form, to: .introspection)
    guard let text = form["token"] else { throw ResponseError.invalidRequest("token is missing.") }
    let (hash, now) = (gate.hasher.hash(text, for: .accessToken), clock.now())
    guard let token = try await gate.store.read({ try $0.validAccessToken(hash, now: now) }) else {
      // Only invalid tokens count, so that who sends them to a resource server does not lock out its users.
      guard limiter.allows(client) else { throw Self.tooMany }
      return .json(IntrospectionResponse(error: Self.hasProof(form) ? "invalid_token" : nil))
    }
    if Self.hasProof(form), let refused = try await refusal(of: form, text, token) { return .json(refused) }
    var response = IntrospectionResponse(token, issuer: origin.issuer, application: application, platform: platform)
    if Self.hasProof(form) { response.proofVerified = true }
    return .json(response)
  }

  private static let tooMany = ResponseError(
    .tooManyRequests, "slow_down", code: Problem.Slug.rateLimited.code, headers: [.retryAfter: "1"])

  /// Whether the proof is to be verified. A caller that sent none to the resource server must not be admitted.
  private static func hasProof(_ form: Form) -> Bool { ["dpop", "htm", "htu"].contains { form[$0] != nil } }

  /// - Returns: what is wrong with the proof; nil if it is right, and was not used before.
  private func refusal(
    of form: Form, _ text: String, _ token: ValidAccessToken
  ) async throws -> IntrospectionResponse? {
    guard let method = form["htm"], let url = form["htu"] else {
      throw ResponseError.invalidRequest("htm and htu are needed.")
    }
    guard let proof = form["dpop"] else { return IntrospectionResponse(error: "invalid_dpop_proof") }
    do {
      let verified = try device.verified(proof, method: method, url: url, accessToken: text)
      guard verified.thumbprint == token.keyThumbprint else {
        return IntrospectionResponse(error: "invalid_token")
      }
      try await device.use(verified, of: token.clientID)
      return nil
    } catch DeviceGate.ProofError.staleNonce {
      return IntrospectionResponse(error: OAuthError.useDPoPNonce, nonce: device.nonces.current())
    } catch DeviceGate.ProofError.tooMany { throw Self.tooMany } catch is DeviceGate.ProofError {
      return IntrospectionResponse(error: "invalid_dpop_proof")
    }
  }
}

/// The response (RFC 7662 §2.2). An invalid token has only `active`, and what was wrong if a proof was to be verified.
struct IntrospectionResponse: Encodable, Equatable {
  /// The confirmation method of a DPoP-bound token (RFC 9449 §6.2).
  struct Confirmation: Encodable, Equatable {
    var jkt: String
  }

  var active: Bool
  /// Whether this server has verified the proof. A server of an earlier version ignores the proof.
  var proofVerified: Bool?
  /// For the caller of the resource server (RFC 9449 §7.1), with the nonce that its next proof needs.
  var error: String?
  var nonce: String?
  var iss: String?
  var clientID: String?
  var tokenType: String?
  var scope: String?
  var cnf: Confirmation?
  /// Seconds since 1970.
  var exp: Int64?
  var iat: Int64?
  /// The user, and the user's profile on the device; only for a user token.
  var sub: String?
  var profileID: String?
  /// The authentication methods, RFC 8176; missing for a token of an earlier version of the server.
  var amr: [String]?
  /// The identifier of the authenticator, other than the PIN, that was used.
  var authenticator: String?
  var appIdentifier: String?
  var appPlatform: String?
  var appVersion: String?

  enum CodingKeys: String, CodingKey {
    case active, error, iss, scope, cnf, exp, iat, sub, amr, authenticator
    case proofVerified = "proof_verified"
    case nonce = "dpop_nonce"
    case clientID = "client_id"
    case tokenType = "token_type"
    case profileID = "profile_id"
    case appIdentifier = "app_identifier"
    case appPlatform = "app_platform"
    case appVersion = "app_version"
  }

  /// An invalid token or proof.
  init(error: String?, nonce: String? = nil) {
    active = false
    self.error = error
    self.nonce = nonce
  }

  init(
    _ token: ValidAccessToken, issuer: String, application: ServerConfiguration.Application, platform: String
  ) {
    active = true
    iss = issuer
    clientID = token.clientID.text
    tokenType = "DPoP"
    scope = (token.profileID == nil ? AccessTokenResponse.Scope.device : .user).rawValue
    cnf = Confirmation(jkt: token.keyThumbprint)
    exp = token.expiresAt.milliseconds / 1000
    iat = max(0, token.expiresAt.milliseconds / 1000 - NewAccessToken.lifetime)
    sub = token.userID?.text
    profileID = token.profileID?.text
    amr = token.origin?.methods
    authenticator = token.origin?.authenticator
    appIdentifier = application.id
    appPlatform = platform
    appVersion = token.softwareVersion
  }
}
