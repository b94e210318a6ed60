// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Token introspection (RFC 7662): a resource server that received an access token asks whether it is valid, whose it
/// is, and how the user authenticated. The resource server checks the DPoP proof itself, with the key thumbprint of the
/// response.
struct IntrospectionRoutes: Sendable {
  let gate: PortalGate
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
      guard limiter.allows(client) else {
        throw ResponseError(
          .tooManyRequests, "slow_down", code: Problem.Slug.rateLimited.code, headers: [.retryAfter: "1"])
      }
      return .json(IntrospectionResponse(active: false))
    }
    return .json(IntrospectionResponse(token, issuer: origin.issuer, application: application, platform: platform))
  }
}

/// The response (RFC 7662 §2.2). An invalid token has only `active`.
struct IntrospectionResponse: Encodable, Equatable {
  /// The confirmation method of a DPoP-bound token (RFC 9449 §6.2).
  struct Confirmation: Encodable, Equatable {
    var jkt: String
  }

  var active: Bool
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
    case active, iss, scope, cnf, exp, iat, sub, amr, authenticator
    case clientID = "client_id"
    case tokenType = "token_type"
    case profileID = "profile_id"
    case appIdentifier = "app_identifier"
    case appPlatform = "app_platform"
    case appVersion = "app_version"
  }

  init(active: Bool) { self.active = active }

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
