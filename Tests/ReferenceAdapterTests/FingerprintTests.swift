// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import OpenPGP
import PINProtection
import ReferenceProtocol
import Secrets
import ServerBackends
import Synchronization
import Testing

@testable import ReferenceAdapter

/// Fingerprints: when their refresh token is usable, and what ends it.
@Suite("A fingerprint at the reference token server", .timeLimit(.minutes(5))) struct FingerprintTests {
  static let cheap = Scrypt.Parameters(cost: 16, blockSize: 1, parallelization: 1)
  static let finger = AuthenticatorData(
    SecretBytes(copying: []), registration: [UInt8](repeating: 5, count: 6000))

  let server: FakeServer
  let http: RecordingHTTPTransport
  let account = AccountID("A")
  let pinToken = SecretBytes(copying: Array(0..<32))
  let token = SecretBytes(copying: Array(32..<64))
  let unlocked = UnlockedTokens(lifetime: .seconds(3600))
  let reader = ScriptedDriver("finger", kind: .biometric)

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
    let protected = try ProtectedToken(
      pinToken, under: Self.pin("13579"), binding: FakeServer.pinBinding, parameters: Self.cheap)
    _ = try server.adapter(http, pin: AccountPIN(protected))
    server.on("/configuration", "{}")
    server.serveTokens()
  }

  static func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

  /// - Parameter tokens: those that outlive a client; new ones after a restart.
  func adapter(_ tokens: UnlockedTokens? = nil) throws -> ReferenceServerClient {
    let board = ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb)
    let adapter = try server.reopened(
      http, capabilities: board, drivers: AuthenticatorDrivers([FingerprintDriver(reader)]),
      unlocked: tokens ?? unlocked)
    adapter.hasAuthenticators.withLock { $0 = true }
    adapter.announced.withLock { $0 = adapter.capabilities }
    return adapter
  }

  var session: UserSession {
    UserSession(account: account, until: server.clock.now + .seconds(60), accessToken: "U")
  }

  func stored() throws -> [StoredAuthenticator] {
    try AccountCredentials(#require(server.registry.accounts().first)).authenticators
  }

  func register(_ adapter: ReferenceServerClient, typing digits: String = "13579") async throws {
    server.list(("finger", .biometric, false))
    server.acceptRegistration(of: token, as: "finger", activation: HTTPResponse(status: 204))
    try await adapter.registerBiometric(
      adapter.use("finger", of: account, for: .register), with: Self.finger, typing: Self.pin(digits), in: session)
    server.list(("finger", .biometric, true))
  }

  func request() -> ApprovalRequest {
    var request = server.request()
    request.method = .pushWithFingerprint
    request.authenticator = "finger"
    request.fallbacks = ["push_with_pin"]
    request.maxFailureCount = 3
    request.previousFailureCount = 0
    request.remainingFailureCount = 3
    return request
  }

  func challenge(_ adapter: ReferenceServerClient) async throws -> Challenge {
    try server.serve(JSON.encode(request()))
    return try await adapter.open(server.pending).contents.challenge
  }

  func isUsable(_ adapter: ReferenceServerClient) async throws -> Bool {
    if case .custom = try await challenge(adapter) { true } else { false }
  }

  var audit: [AuditEntry] { (server.registry as? MemoryRegistry)?.audit ?? [] }

  // MARK: Registration

  @Test("A registration is proved by the PIN, and its token is stored encrypted with it") func registration()
    async throws
  {
    try await register(adapter())
    let known = try #require(stored().first)
    #expect(known.kind == .biometric && known.registration == nil && known.driverData == Self.finger.registration)
    #expect(!SecretBytes.constantTimeEqual(known.token, token))
    let order = try #require(http.requests.first { $0.url.hasSuffix("/registrations") })
    let body = try JSON.decode(AuthenticatorRegistrationRequest.self, from: order.body)
    #expect(body.data == nil)
    let assertion = try KnowledgeAssertion(
      parsing: #require(body.assertion), clientID: FakeServer.clientID, profileID: "PROFIL", audience: order.url,
      now: 1_795_219_200)
    let key = try KnowledgeKey(refreshToken: pinToken, clientID: FakeServer.clientID, profileID: "PROFIL")
    #expect(assertion.isSigned(by: try key.publicKey))
    #expect(audit.map(\.kind) == [.authenticatorRegistered])
    let listed = try await adapter().authenticators(of: account)
    #expect(listed.map(\.kind) == [.biometric] && listed[0].isRegistered && listed[0].isSupported)
  }

  @Test("A wrong PIN registers nothing, and stores nothing") func wrongPIN() async throws {
    var problem = Problem(.pinIncorrect, issuer: FakeServer.url)
    (problem.maxFailureCount, problem.previousFailureCount, problem.remainingFailureCount) = (3, 1, 2)
    let body = JSON.encode(problem)
    let adapter = try adapter()
    server.list(("finger", .biometric, false))
    server.on("\(FakeServer.authenticators)/finger/registrations") { _ in HTTPResponse(status: 422, body: body) }
    await #expect(throws: TokenServerError.pinIncorrect(FailureCounts(max: 3, previous: 1))) {
      try await adapter.registerBiometric(
        adapter.use("finger", of: account, for: .register), with: Self.finger, typing: Self.pin("00000"), in: session)
    }
    #expect(try stored().isEmpty && audit.isEmpty)
  }

  // MARK: The token in memory

  @Test("The finger approves with its own key, and its data is empty") func approval() async throws {
    let adapter = try adapter()
    try await register(adapter)
    guard case .custom(let challenge) = try await challenge(adapter) else {
      Issue.record("not the finger")
      return
    }
    #expect(challenge.sources.map(\.kind) == [.biometric])
    #expect(challenge.sources.map(\.registration) == [Self.finger.registration])
    #expect(challenge.fallback?.length == 5)
    let opened = try await adapter.open(server.pending)
    let answer = try await answer(sealedBy: adapter, opened, .data(AuthenticatorData(SecretBytes(copying: []))))
    #expect(answer.methodUsed == .pushWithFingerprint && answer.gesture.kind == .finger)
    #expect(answer.authenticator == "finger" && answer.customData == nil && answer.pinProof == nil)
    let claim = AuthenticatorClaim(
      nonce: [UInt8](repeating: 7, count: 32), requestSHA256: SHA256.hash(JSON.encode(request())), decision: .accept,
      authenticator: "finger", data: [])
    let key = try KnowledgeKey(
      refreshToken: token, clientID: FakeServer.clientID, profileID: "PROFIL", authenticator: "finger")
    #expect(claim.isProved(by: try #require(answer.authenticatorProof.flatMap(bytes(base64URL:))), try key.publicKey))
  }

  /// Shows the request to a handler that gets this input, and returns the answer that was sent.
  func answer(
    sealedBy adapter: ReferenceServerClient, _ opened: MobileAuthRequest, _ event: DriverEvent? = nil,
    typing digits: String? = nil, response: HTTPResponse? = nil
  ) async throws -> ApprovalAnswer {
    let status = JSON.encode(RequestStatus(state: .authenticated, receipt: "R"))
    server.on("/requests/\(FakeServer.transaction)/answers") { _ in
      response ?? HTTPResponse(status: 200, body: status)
    }
    let panel = ScriptedPanel(clock: server.clock)
    let inbox = Inbox(in: server.environment)
    let handler = Handler(
      servers: [adapter], inbox: inbox, panelTasks: PanelTaskQueue(changes: inbox.changes), drivers: adapter.drivers,
      panel: panel, stateStore: MemoryStateStore(), mustEnroll: false, in: server.environment)
    inbox.connectivity.set(.connected, to: adapter.id)
    inbox.replace(requestsOf: adapter.id, with: [server.pending])
    let running = Task { try await handler.run() }
    await panel.until(challenges: 1)
    if let digits { panel.perform(.typed(digits)) }
    if let event {
      // The reader is asked after the guard time. The clock stands still while only the request's limit is waited for.
      try await eventually("the reader is asked") {
        if !reader.calls.isEmpty { return true }
        if let wait = server.clock.untilNextWakes, wait <= .seconds(1) { server.clock.advance(by: .milliseconds(500)) }
        return false
      }
      reader.say(event)
      reader.end()
    }
    // A wrong PIN is shown, and the next prompt begins at once.
    if response == nil { await panel.until(showing: .idle(pending: 0)) } else { await panel.until(challenges: 2) }
    #expect(panel.shown.contains(.pinWrong(remaining: 2)) == (response != nil))
    running.cancel()
    let posted = try #require(http.requests.last { $0.url.hasSuffix("/answers") })
    let sealed = try JSON.decode(SealedAnswer.self, from: posted.body)
    let message = try #require(bytes(base64: sealed.answer))
    return try JSON.decode(ApprovalAnswer.self, from: server.server.open(message, from: server.token.certificate))
  }

  /// Fails if a match, which is one `if` in a program, is all that an attacker with the board needs.
  @Test("After a restart the request wants the PIN, and a right one makes the finger usable again") func restart()
    async throws
  {
    try await register(adapter())
    let restarted = UnlockedTokens(lifetime: .seconds(3600))
    let adapter = try adapter(restarted)
    #expect(try await !isUsable(adapter))
    #expect(try await adapter.authenticators(of: account).map(\.isSupported) == [false])
    await #expect(throws: TokenServerError.self) {
      try await adapter.logIn(
        with: adapter.use("finger", of: account, for: .authenticate), data: AuthenticatorData(SecretBytes(copying: [])))
    }
    let answer = try await answer(sealedBy: adapter, adapter.open(server.pending), typing: "13579")
    #expect(answer.methodUsed == .pushWithPIN && answer.fallbackFrom == .pushWithFingerprint)
    #expect(try await isUsable(adapter))
    // Also for the next client, after a change of the accounts.
    #expect(try await isUsable(self.adapter(restarted)))
  }

  /// Fails if the finger of an attacker who guesses PINs becomes usable.
  @Test("A wrong PIN makes no finger usable") func wrongPINUnlocksNothing() async throws {
    try await register(adapter())
    let restarted = UnlockedTokens(lifetime: .seconds(3600))
    let adapter = try adapter(restarted)
    #expect(try await !isUsable(adapter))
    var problem = Problem(.pinIncorrect, issuer: FakeServer.url)
    (problem.maxFailureCount, problem.previousFailureCount, problem.remainingFailureCount) = (3, 1, 2)
    problem.nonce = [UInt8](repeating: 8, count: 32).base64URL
    _ = try await answer(
      sealedBy: adapter, adapter.open(server.pending), typing: "00000",
      response: HTTPResponse(status: 422, body: JSON.encode(problem)))
    #expect(try await !isUsable(adapter))
    let isForgotten = adapter.unconfirmed.withLock { $0.isEmpty }
    #expect(isForgotten)
  }

  @Test("A login with the PIN makes the finger usable, and a login with the finger sends no data") func logins()
    async throws
  {
    try await register(adapter())
    let restarted = UnlockedTokens(lifetime: .seconds(3600))
    let adapter = try adapter(restarted)
    #expect(try await adapter.logIn(account, typing: Self.pin("13579")).isOfPIN(of: account))
    #expect(try await isUsable(adapter))
    let session = try await adapter.logIn(
      with: adapter.use("finger", of: account, for: .authenticate), data: AuthenticatorData(SecretBytes(copying: [])))
    #expect(session.authenticator == "finger" && !session.isOfPIN(of: account))
    let form = try #require(http.requests.last { $0.url.hasSuffix("/oauth/token") }).body
    let text = String(decoding: form, as: UTF8.self)
    #expect(text.contains("grant%3Abiometric") && text.contains("authenticator=finger") && !text.contains("data="))
  }

  @Test("After its hours the finger waits for the PIN") func hours() async throws {
    let adapter = try adapter()
    try await register(adapter)
    server.clock.advance(by: .seconds(3599))
    #expect(try await isUsable(adapter))
    server.clock.advance(by: .seconds(1))
    #expect(try await !isUsable(adapter))
  }

  @Test("Without its reader the request wants the PIN") func withoutReader() async throws {
    let adapter = try adapter()
    try await register(adapter)
    reader.set(available: false)
    #expect(try await !isUsable(adapter))
  }
}

extension HTTPRequest {
  var isBiometric: Bool { String(decoding: body, as: UTF8.self).contains("grant%3Abiometric") }
}

extension FakeServer {
  /// Answers every grant.
  func serveTokens() {
    on("/oauth/token") { request in
      let form = String(decoding: request.body, as: UTF8.self)
      let isUser = form.contains("jwt-bearer&") || form.contains("grant-type%3Ajwt-bearer") || request.isBiometric
      let response = AccessTokenResponse(
        accessToken: isUser ? "U" : "D", expiresIn: 900, scope: isUser ? .user : .device,
        profileID: isUser ? "PROFIL" : nil)
      return HTTPResponse(status: 200, body: JSON.encode(response))
    }
  }
}
