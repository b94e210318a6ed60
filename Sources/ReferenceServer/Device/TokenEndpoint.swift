import Cryptography
import Hummingbird
import ReferenceProtocol

/// `POST /oauth/token` and `/oauth/revoke`: `private_key_jwt` clients (RFC 7523) and DPoP-bound tokens (RFC 9449 §5).
struct TokenEndpoint: Sendable {
  /// Seconds.
  static let lifetime: Int64 = 900

  let gate: DeviceGate
  let codes: ActivationDesk
  let seenAssertions: ReplayCache

  func issue(_ request: Request, _ context: ServerContext) async throws -> Response {
    let form = try await request.form()
    let device = try await authenticate(request, form)
    var profileID: String?
    switch form["grant_type"] {
    case Grant.clientCredentials: break
    case Grant.preAuthorizedCode:
      guard let code = form["pre-authorized_code"], let profile = form["profile_id"] else {
        throw Refusal.invalidRequest("pre-authorized_code and profile_id are needed.")
      }
      guard profile.utf8.count == 6, profile.allSatisfy({ $0.isASCII && ($0.isUppercase || $0.isNumber) }) else {
        throw Refusal.invalidRequest("profile_id must be 6 characters of A-Z and 0-9.")
      }
      try await codes.activate(code, on: device, profileID: profile, peer: context.peer)
      profileID = profile
    case nil: throw Refusal.invalidRequest("grant_type is missing.")
    default: throw Refusal(.badRequest, "unsupported_grant_type")
    }
    let token = Random.bytes(32).lowercaseHex
    let hash = gate.peppered.hash(token, for: .accessToken)
    let nowMs = gate.clock.nowMs()
    let issuedProfile = profileID
    try await gate.store.write { database in
      try database.insertAccessToken(
        hash, clientID: device.id, profileID: issuedProfile, expiresAtMs: nowMs + Self.lifetime * 1000, nowMs: nowMs)
    }
    return .json(
      AccessTokenResponse(
        accessToken: token, expiresIn: Int(Self.lifetime), scope: profileID == nil ? .device : .user,
        profileID: profileID))
  }

  /// RFC 7009: whether the token existed is not told.
  func revoke(_ request: Request, _ context: ServerContext) async throws -> Response {
    let form = try await request.form()
    let device = try await authenticate(request, form)
    guard let token = form["token"] else { throw Refusal.invalidRequest("token is missing.") }
    let hash = gate.peppered.hash(token, for: .accessToken)
    try await gate.store.write { try $0.revokeAccessToken(hash, of: device.id) }
    return Response(status: .ok, headers: Response.uncached)
  }

  private func authenticate(_ request: Request, _ form: Form) async throws -> Device {
    let proof: DPoPProof
    do { proof = try gate.proof(of: request, accessToken: nil) } catch .staleNonce {
      throw Refusal(.badRequest, OAuthError.useDPoPNonce, "The proof needs the nonce of the DPoP-Nonce header.")
    } catch .invalid(let why) { throw Refusal(.badRequest, "invalid_dpop_proof", why) }
    guard form["client_assertion_type"] == Grant.clientAssertionType, let assertion = form["client_assertion"],
      let clientID = ClientAssertion.claimedClientID(assertion)
    else { throw Refusal(.unauthorized, "invalid_client", "A client assertion (RFC 7523) is needed.") }
    guard let device = try await gate.store.read({ try $0.device(clientID) }), !device.isDeleted else {
      throw Refusal(
        .unauthorized, "invalid_client", "The device is not registered.", code: Problem.Slug.deviceDeregistered.code)
    }
    let identifier: String
    do {
      identifier = try ClientAssertion.verify(
        assertion, clientID: clientID, audience: gate.origin.issuer, now: gate.clock.nowSeconds, key: device.key)
    } catch .clockWrong {
      throw Refusal(
        .badRequest, "invalid_client", "The device's clock is wrong.", code: Problem.Slug.invalidDatetime.code)
    } catch .invalid(let what) { throw Refusal(.unauthorized, "invalid_client", "The assertion's \(what) is wrong.") }
    guard proof.key.thumbprint == device.keyThumbprint else {
      throw Refusal(.badRequest, "invalid_dpop_proof", "The proof is by another key than the client's.")
    }
    guard gate.limiter.allows(clientID) else { throw Self.slowDown }
    switch seenAssertions.remember(identifier, of: clientID) {
    case .new: return device
    case .seen: throw Refusal(.unauthorized, "invalid_client", "The assertion was used before.")
    case .full: throw Self.slowDown
    }
  }

  private static let slowDown = Refusal(
    .tooManyRequests, "slow_down", code: Problem.Slug.rateLimited.code, headers: [.retryAfter: "1"])
}
