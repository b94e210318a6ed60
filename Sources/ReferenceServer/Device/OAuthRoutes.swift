import Cryptography
import Hummingbird
import Logging
import ReferenceProtocol

/// Discovery, registration and revocation. The token endpoint is in `TokenEndpoint`.
struct OAuthRoutes: Sendable {
  let gate: DeviceGate
  let codes: ActivationDesk
  let tokens: TokenEndpoint
  let announcer: Announcer

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
    guard let credential = bearer(of: request) else {
      throw Refusal(
        .unauthorized, "invalid_token", "An activation code or fleet token is needed as Bearer.",
        headers: [.wwwAuthenticate: "Bearer"])
    }
    guard credential.utf8.count <= 128 else {
      throw Refusal(.unauthorized, "invalid_token", "An activation code or fleet token is shorter than that.")
    }
    let registration = try JSON.decode(RegistrationRequest.self, from: await request.bytes())
    guard registration.tokenEndpointAuthMethod == "private_key_jwt", registration.jwks.keys.count == 1 else {
      throw Refusal(.badRequest, "invalid_client_metadata", "private_key_jwt with exactly one key is needed.")
    }
    guard (1...128).contains(registration.clientName.utf8.count), registration.softwareID.utf8.count <= 128,
      registration.softwareVersion.utf8.count <= 64
    else { throw Refusal(.badRequest, "invalid_client_metadata", "client_name, software_id or version is too long.") }
    guard [registration.clientName, registration.softwareID, registration.softwareVersion].allSatisfy(\.isPrintable)
    else {
      throw Refusal(
        .badRequest, "invalid_client_metadata",
        "client_name, software_id and software_version must have no control or format characters.")
    }
    guard registration.approvalCapabilities.isAcceptable else {
      throw Refusal(
        .badRequest, "invalid_client_metadata", "approval_capabilities \(ApprovalCapabilities.bounds).")
    }
    let key: P256PublicKey
    do { key = try registration.jwks.keys[0].publicKey() } catch {
      throw Refusal(.badRequest, "invalid_client_metadata", "\(error)")
    }
    let clientID = try await codes.register(registration, key: key, credential: credential, peer: context.peer)
    return .json(
      RegistrationResponse(
        clientID: clientID, registrationClientURI: "\(gate.origin.issuer)/oauth/register/\(clientID)"),
      status: .created)
  }

  /// RFC 7592 §2.3.
  private func deregister(_ request: Request, _ context: ServerContext) async throws -> Response {
    let caller = try await gate.admit(request)
    let clientID = try context.path("client_id")
    guard caller.device.id == clientID else { throw DeviceRefusal(.actionNotAllowed, "that is another device") }
    let nowMs = gate.clock.nowMs()
    announcer.announce(try await gate.store.write { try $0.deleteDevice(clientID, nowMs: nowMs) })
    announcer.log.info("device \(clientID) deregistered itself")
    return .noContent
  }

  private func bearer(of request: Request) -> String? {
    guard let header = request.headers[.authorization] else { return nil }
    let parts = header.split(separator: " ")
    return parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
  }
}

extension ApprovalCapabilities {
  static let bounds = "must have at most 32 names of at most 64 printable bytes"

  /// Whether what a device names is within `bounds`.
  var isAcceptable: Bool {
    let names = biometric + custom
    return names.count <= 32 && names.allSatisfy { $0.utf8.count <= 64 && $0.isPrintable }
  }
}
