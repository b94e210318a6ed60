// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import Logging
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The routes for discovery, registration and revocation. The token endpoint is in `TokenEndpoint`.
struct OAuthRoutes: Sendable {
  let gate: DeviceGate
  let codes: ActivationService
  let tokens: TokenEndpoint
  let announcer: any Announcer

  func add(to router: Router<ServerContext>) {
    router.get("/.well-known/oauth-authorization-server") { _, _ in
      Response.json(ServerMetadata(issuer: gate.origin.issuer))
    }
    router.post("/oauth/register") { request, context in try await register(request, context) }
    router.delete("/oauth/register/:client_id") { request, context in try await deregister(request, context) }
    router.post("/oauth/token") { request, context in try await tokens.issue(request, context) }
    router.post("/oauth/revoke") { request, context in try await tokens.revoke(request, context) }
  }

  private func register(_ request: Request, _ context: ServerContext) async throws -> Response {
    guard let credential = AuthorizationHeader.word(of: request.headers[.authorization], scheme: "bearer") else {
      throw ResponseError(
        .unauthorized, "invalid_token", "An activation code or fleet token is needed as Bearer.",
        headers: [.wwwAuthenticate: "Bearer"])
    }
    guard credential.utf8.count <= 128 else {
      throw ResponseError(
        .unauthorized, "invalid_token", "The activation code or fleet token is too long.",
        headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#])
    }
    let registration = try JSON.decode(RegistrationRequest.self, from: await request.bytes())
    let key: P256PublicKey
    do { key = try registration.checked() } catch {
      throw ResponseError(.badRequest, "invalid_client_metadata", error.description)
    }
    do { try request.headers.checkProtocolVersions() } catch {
      throw ResponseError(.badRequest, "invalid_client_metadata", error.detail ?? "", code: error.slug.code)
    }
    let clientID = try await codes.register(registration, key: key, credential: credential, peer: context.peer)
    return .json(
      RegistrationResponse(
        clientID: clientID.text, registrationClientURI: "\(gate.origin.issuer)/oauth/register/\(clientID)"),
      status: .created)
  }

  /// Deregistration (RFC 7592 §2.3).
  private func deregister(_ request: Request, _ context: ServerContext) async throws -> Response {
    let caller = try await gate.admit(request)
    let clientID = ClientID(try context.path("client_id"))
    guard caller.clientID == clientID else { throw DeviceAPIError(.actionNotAllowed, "that is another device") }
    let now = gate.clock.now()
    announcer.announce(try await gate.store.write { try $0.deleteDevice(clientID, now: now) })
    announcer.log.info("device \(clientID) deregistered itself")
    return .noContent
  }
}
