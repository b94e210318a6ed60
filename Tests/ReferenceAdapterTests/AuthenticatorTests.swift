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
import Testing

@testable import ReferenceAdapter

/// Authenticators besides the PIN: their list, registration and use.
@Suite(.timeLimit(.minutes(5))) struct AuthenticatorTests {
  private let server: FakeServer
  private let http: RecordingHTTPTransport
  private let account = AccountID("A")
  private let token = SecretBytes(copying: Array(32..<64))
  private let code = AuthenticatorData(SecretBytes(copying: Array("4711".utf8)))

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
    _ = try server.adapter(http)
  }

  /// The adapter over what is stored, as after a restart.
  private func adapter() throws -> ReferenceServerClient {
    let board = ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb)
    let adapter = try server.reopened(
      http, capabilities: board, drivers: AuthenticatorDrivers([KeypadCodeDriver("number")]))
    adapter.hasAuthenticators.withLock { $0 = true }
    adapter.announced.withLock { $0 = adapter.capabilities }
    return adapter
  }

  private var session: UserSession {
    UserSession(account: account, until: server.clock.now + .seconds(60), accessToken: "U")
  }

  private func report(_ state: AuthenticatorRegistrationStatus.State) {
    let body = JSON.encode(AuthenticatorRegistrationStatus(state: state))
    server.on("\(FakeServer.authenticators)/number/registrations/\(FakeServer.registrationID)") { _ in
      HTTPResponse(status: 200, body: body)
    }
  }

  private func refusal(_ slug: Problem.Slug) -> HTTPResponse {
    HTTPResponse(status: slug.status, body: JSON.encode(Problem(slug, issuer: FakeServer.url)))
  }

  private func stored() throws -> [StoredAuthenticator] {
    try AccountCredentials(#require(server.registry.accounts().first)).authenticators
  }

  private func register(_ adapter: ReferenceServerClient) async throws {
    _ = try await adapter.register(adapter.use("number", of: account, for: .register), with: code, in: session)
  }

  private func logIn(_ adapter: ReferenceServerClient) async throws -> UserSession {
    try await adapter.logIn(with: adapter.use("number", of: account, for: .authenticate), data: code)
  }

  private func register() async throws {
    server.list(("number", .custom, false))
    server.acceptRegistration(of: token, activation: HTTPResponse(status: 204))
    try await register(adapter())
    server.list(("number", .custom, true))
  }

  @Test("A registration is stored with its own token, and activated with its key") func registration() async throws {
    try await register()
    let known = try #require(stored().first)
    #expect(known.identifier == "number" && known.registration == nil)
    #expect(SecretBytes.constantTimeEqual(known.token, token))
    let order = try #require(http.requests.first { $0.url.hasSuffix("/registrations") })
    #expect(order.headers["Authorization"] == "DPoP U" && order.headers["Idempotency-Key"] != nil)
    #expect(
      try JSON.decode(AuthenticatorRegistrationRequest.self, from: order.body).data == Array("4711".utf8).base64)
    let sent = try #require(http.requests.first { $0.url.hasSuffix("/activation") })
    let assertion = try KnowledgeAssertion(
      parsing: JSON.decode(AuthenticatorActivation.self, from: sent.body).assertion, clientID: FakeServer.clientID,
      profileID: "PROFIL", audience: sent.url, now: 1_795_219_200,
      nonce: FakeServer.registrationID, authenticator: "number")
    let key = try KnowledgeKey(
      refreshToken: token, clientID: FakeServer.clientID, profileID: "PROFIL", authenticator: "number")
    #expect(assertion.isSigned(by: try key.publicKey))
    #expect(try await adapter().authenticators(of: account).map(\.isRegistered) == [true])
  }

  /// A power loss between the two phases: the token does not know whether the activation arrived.
  @Test(
    "After an interrupted activation, the server is asked",
    arguments: [(.registered, true), (.pending, false), (.void, false)]
      as [(AuthenticatorRegistrationStatus.State, Bool)])
  func interruptedActivation(state: AuthenticatorRegistrationStatus.State, isRegistered: Bool) async throws {
    server.list(("number", .custom, false))
    server.acceptRegistration(of: token, activation: refusal(.actionNotAllowed))
    await #expect(throws: TokenServerError.self) { try await register(adapter()) }
    #expect(try stored().map(\.registration) == [FakeServer.registrationID])
    report(state)
    server.list(("number", .custom, state == .registered))
    #expect(try await adapter().authenticators(of: account).map(\.isRegistered) == [isRegistered])
    #expect(try stored().count == (state == .void ? 0 : 1))
    // An authenticator whose registration was not completed cannot log in.
    guard !isRegistered else { return }
    await #expect(throws: TokenServerError.self) { _ = try await logIn(adapter()) }
  }

  @Test("An authenticator that the server has deregistered is forgotten") func deregisteredByServer() async throws {
    try await register()
    try adapter().prefer("number", of: account)
    server.list(("number", .custom, false))
    let all = try await adapter().authenticators(of: account)
    #expect(all.map(\.isRegistered) == [false] && all.allSatisfy { !$0.isPreferred })
    #expect(try stored().isEmpty)
    #expect(try !adapter().hasPreference(account))
  }

  /// The answer to an attempt and the server's list can both say so, at the same time.
  @Test("A deregistration that is reported several times is recorded once") func reportedTwice() async throws {
    try await register()
    let adapter = try adapter()
    let known = try #require(stored().first)
    let before = try adapter.account(account)
    await withTaskGroup { group in
      for _ in 1...8 { group.addTask { try? adapter.forget(known, of: before, because: "reported") } }
    }
    #expect((try #require(server.registry as? MemoryRegistry)).audit.count { $0.kind == .authenticatorRevoked } == 1)
    #expect(try stored().isEmpty)
  }

  /// Fails if a power loss between the change and its entry leaves the change without one.
  @Test("A preference and a deregistration are recorded with the change", arguments: [true, false])
  func recorded(isReachable: Bool) async throws {
    try await register()
    let adapter = try adapter()
    try adapter.prefer("number", of: account)
    let status = isReachable ? 204 : 503
    server.on("\(FakeServer.authenticators)/number/deregistration") { _ in HTTPResponse(status: status) }
    let task = Task { try await adapter.deregister("number", with: nil, in: session) }
    if !isReachable {
      for pause in ReferenceServerClient.pauses {
        await server.clock.untilAsleep()
        server.clock.advance(by: pause)
      }
    }
    #expect(try await task.finished() == isReachable)
    let entries = try #require(server.registry as? MemoryRegistry).audit.filter { $0.kind != .authenticatorRegistered }
    #expect(entries.map(\.kind) == [.authenticatorPreferred, .authenticatorDeregistered])
    #expect(entries.map(\.detail) == ["number", isReachable ? "number" : "number, only on this token (9028)"])
    #expect(try stored().isEmpty)
  }

  /// Fails if a reader that is plugged in after the start can be used only after another start.
  @Test("A driver that has become usable is announced before the list is read, once") func pluggedInLater() async throws
  {
    let driver = ScriptedDriver("reader")
    driver.set(available: false)
    let adapter = try server.reopened(
      http, capabilities: ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb),
      drivers: AuthenticatorDrivers([KeypadCodeDriver("number"), driver]))
    adapter.hasAuthenticators.withLock { $0 = true }
    adapter.announced.withLock { $0 = adapter.capabilities }
    server.list(("reader", .custom, false))
    server.on("/validations", "{}")
    #expect(try await adapter.authenticators(of: account).notRegistered.isEmpty)
    driver.set(available: true)
    for _ in 1...2 {
      #expect(try await adapter.authenticators(of: account).notRegistered.map(\.identifier) == ["reader"])
    }
    let announced = try http.requests.filter { $0.url.hasSuffix("/validations") }.map {
      try JSON.decode(ValidationRequest.self, from: $0.body).approvalCapabilities?.custom
    }
    #expect(announced == [["number", "reader"]])
  }

  @Test("Entries that no token can use are not listed") func strangeEntries() async throws {
    server.list(("number", .custom, true), ("..", .custom, true), ("a/b", .custom, false), ("iris", .other, false))
    let all = try await adapter().authenticators(of: account)
    // The server has it, but this token has no key for it.
    #expect(all.map(\.identifier) == ["number"] && all.registered.isEmpty && all.notRegistered.count == 1)
  }

  /// Fails if a login names the PIN as preferred because the server was not asked yet.
  @Test("Before the server has said whether it has authenticators, they cannot be listed") func notValidatedYet()
    async throws
  {
    try await register()
    try adapter().prefer("number", of: account)
    let adapter = try adapter()
    adapter.hasAuthenticators.withLock { $0 = nil }
    await #expect(throws: TokenServerError.self) { try await adapter.authenticators(of: account) }
    let stored = try adapter.storedAuthenticators(of: account)
    #expect(stored.map(\.identifier) == ["number"] && stored.preferred?.identifier == "number")
  }

  @Test("An earlier server has no authenticators besides the PIN") func earlierServer() async throws {
    let adapter = try adapter()
    adapter.hasAuthenticators.withLock { $0 = false }
    #expect(try await adapter.authenticators(of: account).isEmpty)
  }

  /// Fails if the call is repeated: a script could see one code several times.
  @Test("A script that could not be run is an error, and is not asked again") func scriptFault() async throws {
    try await register()
    var error = OAuthError("server_error", "The authenticator's script could not be run.", code: 10000)
    error.customInfo = CustomInfo(status: 3001, data: "")
    let body = JSON.encode(error)
    let device = JSON.encode(AccessTokenResponse(accessToken: "T", expiresIn: 900, scope: .device))
    let isLogin: @Sendable (HTTPRequest) -> Bool = { request in
      String(decoding: request.body, as: UTF8.self).contains("custom-authenticator")
    }
    server.on("/configuration", "{}")
    server.on("/oauth/token") { request in
      isLogin(request) ? HTTPResponse(status: 500, body: body) : HTTPResponse(status: 200, body: device)
    }
    let thrown = await #expect(throws: TokenServerError.self) {
      _ = try await logIn(adapter())
    }
    guard case .authenticatorFailed(let failure) = thrown else {
      Issue.record("\(String(describing: thrown))")
      return
    }
    #expect(failure.number == 10000 && !failure.isRevoked && failure.info?.status == 3001)
    #expect(http.requests.count(where: isLogin) == 1)
    #expect(try stored().count == 1)
  }

  @Test("The session of a login names its authenticator") func sessionOfALogin() async throws {
    try await register()
    let device = JSON.encode(AccessTokenResponse(accessToken: "T", expiresIn: 900, scope: .device))
    let user = JSON.encode(AccessTokenResponse(accessToken: "U", expiresIn: 900, scope: .user, profileID: "PROFIL"))
    server.on("/configuration", "{}")
    server.on("/oauth/token") { request in
      let isLogin = String(decoding: request.body, as: UTF8.self).contains("custom-authenticator")
      return HTTPResponse(status: 200, body: isLogin ? user : device)
    }
    #expect(try await logIn(adapter()).authenticator == "number")
  }

  @Test("Errors about authenticators keep their numbers, and revoke", arguments: [true, false])
  func loginErrors(isRevoked: Bool) async throws {
    try await register()
    var error = OAuthError("invalid_grant", "The authenticator failed.", code: 9027)
    error.customInfo = CustomInfo(status: isRevoked ? 5000 : 4000, data: "no\u{1B}[31m")
    error.authenticatorRevoked = isRevoked
    let body = JSON.encode(error)
    let device = JSON.encode(AccessTokenResponse(accessToken: "T", expiresIn: 900, scope: .device))
    server.on("/configuration", "{}")
    server.on("/oauth/token") { request in
      let isLogin = String(decoding: request.body, as: UTF8.self).contains("custom-authenticator")
      return isLogin ? HTTPResponse(status: 400, body: body) : HTTPResponse(status: 200, body: device)
    }
    let thrown = await #expect(throws: TokenServerError.self) {
      _ = try await logIn(adapter())
    }
    guard case .authenticatorFailed(let failure) = thrown else {
      Issue.record("\(String(describing: thrown))")
      return
    }
    #expect(
      failure.number == 9027 && failure.isRevoked == isRevoked && failure.info?.status == (isRevoked ? 5000 : 4000))
    // For programs as it is; sanitized where it is shown.
    #expect(failure.info?.data == "no\u{1B}[31m" && !failure.description.contains("\u{1B}"))
    #expect(try stored().isEmpty == isRevoked)
  }
}
