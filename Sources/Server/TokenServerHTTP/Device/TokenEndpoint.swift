// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import OpenPGP
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// `POST /oauth/token` and `/oauth/revoke`: `private_key_jwt` clients (RFC 7523) and DPoP-bound tokens (RFC 9449 §5).
struct TokenEndpoint: Sendable {
  let gate: DeviceGate
  let codes: ActivationService
  let logins: LoginService
  let authenticatorLogins: AuthenticatorLoginService
  /// Whether the activation of a profile includes choosing a PIN.
  let wantsPIN: Bool

  func issue(_ request: Request, _ context: ServerContext) async throws -> Response {
    let form = try await request.form()
    let device = try await authenticate(request, form)
    switch try read(form) {
    case .clientCredentials: return .json(try await token(for: device, profileID: nil, by: .device))
    case .activation(let code, let profileID, let certificate):
      return .json(try await activate(code, as: profileID, sealingTo: certificate, on: device, context))
    case .logIn(let assertion, let profileID):
      return try await logins.logIn(assertion, profileID: profileID, on: device)
    case .logInWithAuthenticator(let login): return try await authenticatorLogins.logIn(login, on: device)
    }
  }

  private func read(_ form: Form) throws(ResponseError) -> TokenRequest {
    do { return try TokenRequest(form) } catch {
      switch error {
      case .unsupportedGrant: throw ResponseError(.badRequest, "unsupported_grant_type")
      case .invalid(let why): throw .invalidRequest(why)
      }
    }
  }

  private func activate(
    _ code: String, as profileID: ProfileID, sealingTo certificate: String?, on device: Device, _ context: ServerContext
  ) async throws -> AccessTokenResponse {
    var recipient: OpenPGPCertificate?
    if wantsPIN {
      recipient = certificate.flatMap(NewKnowledgeKey.recipient)
      guard recipient != nil else {
        throw ResponseError.invalidRequest("ephemeral_certificate must be a certificate of the profile v4-25519.")
      }
    }
    let proposal = try await codes.activate(
      code, on: device, profileID: profileID, sealingTo: recipient, peer: context.peer)
    var response = try await token(for: device, profileID: profileID, by: .activation)
    response.userID = try await gate.store.read { try $0.profile(profileID, on: device.id)?.userID.text }
    response.sealedToken = proposal?.sealedToken
    response.serverCertificate = proposal?.serverCertificate.bytes.base64
    response.pinNonce = proposal?.nonce
    return response
  }

  private func token(
    for device: Device, profileID: ProfileID?, by origin: AccessTokenOrigin
  ) async throws -> AccessTokenResponse {
    let token = NewAccessToken(for: device.id, profileID: profileID, by: origin, hasher: gate.hasher)
    let now = gate.clock.now()
    try await gate.store.write { try token.insert(into: $0, now: now) }
    return token.response
  }

  /// Revocation (RFC 7009). The response does not disclose whether the token existed.
  func revoke(_ request: Request, _ context: ServerContext) async throws -> Response {
    let form = try await request.form()
    let device = try await authenticate(request, form)
    guard let token = form["token"] else { throw ResponseError.invalidRequest("token is missing.") }
    let hash = gate.hasher.hash(token, for: .accessToken)
    try await gate.store.write { try $0.revokeAccessToken(hash, of: device.id) }
    return Response(status: .ok, headers: Response.uncached)
  }

  private func authenticate(_ request: Request, _ form: Form) async throws -> Device {
    let proof: DPoPProof
    do { proof = try gate.proof(of: request, accessToken: nil) } catch { throw Self.refusal(error) }
    guard form["client_assertion_type"] == Grant.clientAssertionType, let assertion = form["client_assertion"],
      let clientID = ClientAssertion.claimedClientID(assertion).map({ ClientID($0) })
    else { throw ResponseError(.unauthorized, "invalid_client", "A client assertion (RFC 7523) is needed.") }
    guard let device = try await gate.store.read({ try $0.device(clientID) }) else { throw Self.notRegistered(nil) }
    let identifier: String
    do {
      identifier = try ClientAssertion.verify(
        assertion, clientID: clientID.text, audience: gate.origin.issuer, now: gate.clock.nowSeconds, key: device.key)
    } catch .clockWrong {
      throw ResponseError(
        .badRequest, "invalid_client", "The device's clock is wrong.", code: Problem.Slug.invalidDatetime.code)
    } catch .invalid(let what) {
      throw ResponseError(.unauthorized, "invalid_client", "The assertion's \(what) is wrong.")
    }
    guard proof.thumbprint == device.keyThumbprint else {
      throw ResponseError(.badRequest, "invalid_dpop_proof", "The proof is by another key than the client's.")
    }
    guard gate.limiter.allows(clientID.text) else { throw Self.slowDown }
    RequestSender.authenticated(as: clientID)
    do { try await gate.use(proof, of: clientID) } catch let error as DeviceGate.ProofError {
      throw Self.refusal(error)
    }
    // After these checks: each of these responses costs up to sixteen signatures.
    guard !device.isDeleted else { throw Self.notRegistered(Gone(clientID: clientID)) }
    switch try await gate.remember(assertion: identifier, of: clientID) {
    case .new, .full: return device
    case .seen: throw ResponseError(.unauthorized, "invalid_client", "The assertion was used before.")
    case .tooMany: throw Self.slowDown
    }
  }

  private static func refusal(_ refusal: DeviceGate.ProofError) -> ResponseError {
    switch refusal {
    case .staleNonce:
      ResponseError(.badRequest, OAuthError.useDPoPNonce, "The proof needs the nonce of the DPoP-Nonce header.")
    case .tooMany: slowDown
    case .invalid(let why): ResponseError(.badRequest, "invalid_dpop_proof", why)
    }
  }

  private static func notRegistered(_ gone: Gone?) -> ResponseError {
    ResponseError(
      .unauthorized, "invalid_client", "The device is not registered.", code: Problem.Slug.deviceDeregistered.code,
      gone: gone)
  }

  private static let slowDown = ResponseError(
    .tooManyRequests, "slow_down", code: Problem.Slug.rateLimited.code, headers: [.retryAfter: "1"])
}
