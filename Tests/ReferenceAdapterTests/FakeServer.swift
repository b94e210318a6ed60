// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerBackends
import Synchronization

@testable import ReferenceAdapter

/// The server's side of the reference protocol at the level of the HTTP client: nonces, tokens, and a scripted response
/// per path.
final class FakeServer: Sendable {
  typealias Route = @Sendable (HTTPRequest) throws(HTTPTransportError) -> HTTPResponse

  static let url = "https://token.example"
  static let clientID = String(repeating: "A", count: 64)

  let clock = ManualClock(wallClockMilliseconds: 0)
  let environment: TokenEnvironment
  let deviceKey: P256PrivateKey
  let token: OpenPGPKey
  let server: OpenPGPKey
  private let state = Mutex((nonce: 1, tokens: 0, routes: [String: Route]()))
  private let stream: @Sendable (HTTPRequest) -> HTTPResponseStream
  /// The adapter's store of enrollments.
  let registry: any SharedEnrollmentRegistry

  init(
    registry: any SharedEnrollmentRegistry = MemoryRegistry(),
    stream: @escaping @Sendable (HTTPRequest) -> HTTPResponseStream = RecordingHTTPTransport.silentStream
  ) throws {
    self.registry = registry
    environment = .test(clock)
    deviceKey = try P256PrivateKey()
    token = try OpenPGPKey.generate(userID: "token")
    server = try OpenPGPKey.generate(userID: "server")
    self.stream = stream
  }

  var tokensGiven: Int { state.withLock { $0.tokens } }

  func on(_ path: String, _ route: @escaping Route) { state.withLock { $0.routes[path] = route } }
  func on(_ path: String, status: Int = 200, _ body: String, headers: HTTPHeaders = [:]) {
    on(path) { _ in HTTPResponse(status: status, headers: headers, body: Array(body.utf8)) }
  }
  func on(_ path: String, problem slug: Problem.Slug, state: RequestState? = nil) {
    let problem = Problem(slug, issuer: Self.url, detail: "d", state: state)
    on(path) { _ in HTTPResponse(status: problem.status, body: JSON.encode(problem)) }
  }

  /// Makes older nonces stale.
  func turnNonce() { state.withLock { $0.nonce += 1 } }

  private var nonce: String { state.withLock { "nonce-\($0.nonce)" } }
  private var common: HTTPHeaders { ["DPoP-Nonce": nonce, "Date": "Sat, 21 Nov 2026 00:00:00 GMT"] }

  func makeHTTPTransport() -> RecordingHTTPTransport {
    RecordingHTTPTransport(stream: stream) { [self] request throws(HTTPTransportError) in
      var response = try answer(request)
      for (name, value) in common.fields { response.headers[name] = response.headers[name] ?? value }
      return response
    }
  }

  private func answer(_ request: HTTPRequest) throws(HTTPTransportError) -> HTTPResponse {
    let path = String(request.url.dropFirst(Self.url.count))
    let token = request.headers["Authorization"].map { String($0.dropFirst("DPoP ".count)) }
    guard let text = request.headers["DPoP"],
      let proof = try? DPoPProof(verifying: text, method: request.method.rawValue, url: request.url, accessToken: token)
    else { throw .malformed("no proof for \(path)") }
    let isFresh = proof.nonce == nonce && proof.key == JWK(deviceKey.publicKey)
    if path == "/oauth/token" {
      guard isFresh else { return HTTPResponse(status: 400, body: JSON.encode(OAuthError(OAuthError.useDPoPNonce))) }
      if let route = state.withLock({ $0.routes[path] }) { return try route(request) }
      state.withLock { $0.tokens += 1 }
      return HTTPResponse(
        status: 200,
        body: JSON.encode(AccessTokenResponse(accessToken: "T\(tokensGiven)", expiresIn: 900, scope: .device)))
    }
    guard isFresh else {
      return HTTPResponse(status: 401, headers: ["WWW-Authenticate": "DPoP error=\"use_dpop_nonce\""])
    }
    // A server ignores a query that it does not know.
    let resource = path.dropFirst("/device/v1".count)
    let routes = state.withLock { $0.routes }
    guard let route = routes[String(resource)] ?? routes[String(resource.prefix { $0 != "?" })] else {
      throw .malformed("no route \(path)")
    }
    return try route(request)
  }

  func client(_ http: RecordingHTTPTransport) -> DeviceClient {
    DeviceClient(
      issuer: Self.url, clientID: Self.clientID, key: deviceKey, http: http, in: environment)
  }

  static let pinBinding = SecretBytes(copying: [UInt8](repeating: 3, count: 32))

  /// The adapter, enrolled with one account "A", profile "PROFIL".
  func adapter(_ http: RecordingHTTPTransport, pin: AccountPIN? = nil) throws -> ReferenceServerClient {
    let device = DeviceCredentials(deviceKey: deviceKey, clientID: Self.clientID, pins: [])
    var account = AccountCredentials(key: token, serverCertificate: server.certificate, codeDigest: [])
    account.pin = pin
    let id = TokenServerID("token.example")
    try registry.put(
      TokenServerRecord(id: id, kind: ReferenceServerClient.kind, url: Self.url, secrets: device.encoded()))
    try registry.put(
      account.stored(
        in: AccountRecord(
          id: AccountID("A"), server: id, profile: "PROFIL", stage: .active, secrets: SecretBytes(copying: []))), nil)
    return try reopened(http)
  }

  /// A new adapter over the registry's current contents, as after a restart.
  func reopened(
    _ http: RecordingHTTPTransport, pinBinding: SecretBytes = FakeServer.pinBinding,
    capabilities: ApprovalCapabilities? = nil, drivers: AuthenticatorDrivers = AuthenticatorDrivers(),
    unlocked: UnlockedTokens = UnlockedTokens()
  ) throws -> ReferenceServerClient {
    try ReferenceServerClient(
      registry.servers()[0], accounts: registry.accounts(), registry: registry, pinBinding: pinBinding,
      http: http, in: environment, capabilities: capabilities, drivers: drivers, unlocked: unlocked)
  }

  /// Runs a handler with one request until `body` returns.
  func withHandler(_ adapter: ReferenceServerClient, _ body: (ScriptedPanel) async throws -> Void) async throws {
    let panel = ScriptedPanel()
    let inbox = Inbox(in: environment)
    let handler = Handler(
      servers: [adapter], inbox: inbox, panelTasks: PanelTaskQueue(changes: inbox.changes), panel: panel,
      stateStore: MemoryStateStore(), mustEnroll: false, in: environment)
    inbox.connectivity.set(.connected, to: adapter.id)
    inbox.replace(requestsOf: adapter.id, with: [pending])
    let running = Task { try await handler.run() }
    defer { running.cancel() }
    try await body(panel)
  }

  static let transaction = "00000000-0000-4000-8000-000000000001"

  func request() -> ApprovalRequest {
    ApprovalRequest(
      iss: Self.url, clientID: Self.clientID, profileID: "PROFIL", transactionID: Self.transaction, type: "login",
      method: .push, message: "m", pushMessage: nil, nonce: [UInt8](repeating: 7, count: 32).base64URL, sentAtMs: 1,
      expiresInMs: 60_000)
  }

  var pending: PendingMobileAuthRequest {
    PendingMobileAuthRequest(
      transaction: TransactionID(Self.transaction)!, server: TokenServerID("token.example"), account: AccountID("A"),
      sentAtMilliseconds: 1, timeToLive: .seconds(60), message: nil, deadline: clock.now + .seconds(60))
  }

  /// Returns this plaintext as the request's message.
  func serve(_ plaintext: [UInt8], from signer: OpenPGPKey? = nil, to recipient: OpenPGPCertificate? = nil) throws {
    let sealed = try (signer ?? server).seal(plaintext, to: recipient ?? token.certificate)
    let body = JSON.encode(SealedRequest(message: sealed.base64, expiresInMs: 60_000))
    on("/requests/\(Self.transaction)/message") { _ in HTTPResponse(status: 200, body: body) }
  }
}

/// Counts calls.
final class Counter: Sendable {
  private let value = Mutex(0)
  var now: Int { value.withLock { $0 } }

  func increment() -> Int {
    value.withLock { value in
      value += 1
      return value
    }
  }
}
