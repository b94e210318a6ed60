// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerBackends
import Synchronization
import Testing

@testable import MobileAuth
@testable import ReferenceAdapter

/// Requests that an authenticator outside of the panel approves or cancels: what its driver gets, and what is signed.
@Suite("Answers of drivers", .timeLimit(.minutes(2))) struct DriverAnswerTests {
  private let server: FakeServer
  private let http: RecordingHTTPTransport
  private let token = SecretBytes(copying: Array(32..<64))
  private let account = AccountID("A")

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
    _ = try server.adapter(http)
  }

  private func adapter() throws -> ReferenceServerClient {
    let adapter = try server.reopened(
      http, capabilities: ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb),
      drivers: AuthenticatorDrivers([ScriptedDriver("number")]))
    adapter.hasAuthenticators.withLock { $0 = true }
    adapter.announced.withLock { $0 = adapter.capabilities }
    return adapter
  }

  /// The adapter after a restart, with a registered authenticator.
  private func registered() async throws -> ReferenceServerClient {
    server.list(("number", .custom, false))
    server.acceptRegistration(of: token, activation: HTTPResponse(status: 204))
    let adapter = try adapter()
    let session = UserSession(account: account, until: server.clock.now + .seconds(60), accessToken: "U")
    _ = try await adapter.register(
      adapter.use("number", of: account, for: .register),
      with: AuthenticatorData(SecretBytes(copying: [1]), registration: [7, 8]), in: session)
    return try self.adapter()
  }

  private var request: ApprovalRequest {
    var request = server.request()
    (request.method, request.authenticator, request.message) = (.pushWithCustomAuthenticator, "number", "Pay 5 EUR")
    return request
  }

  /// The content of the sealed answer.
  private func content(_ response: ChallengeResponse?, _ adapter: ReferenceServerClient) async throws -> ApprovalAnswer
  {
    let sealed = try await adapter.seal(try #require(response))
    let message = try #require(bytes(base64: JSON.decode(SealedAnswer.self, from: sealed.body).answer))
    return try JSON.decode(ApprovalAnswer.self, from: server.server.open(message, from: server.token.certificate))
  }

  @Test("The driver gets the challenge of exactly this request, and what it kept at the registration") func challenge()
    async throws
  {
    let adapter = try await registered()
    try server.serve(JSON.encode(request))
    let opened = try await adapter.open(server.pending)
    var challenge = AuthenticatorChallenge(
      for: .push, issuer: FakeServer.url, clientID: FakeServer.clientID, profileID: "PROFIL", authenticator: "number",
      nonce: request.nonce)
    challenge.transactionID = FakeServer.transaction
    challenge.decision = "accept"
    challenge.requestSHA256 = SHA256.hash(JSON.encode(request)).base64URL
    challenge.messageSHA256 = AuthenticatorChallenge.digest(ofMessage: "Pay 5 EUR")
    #expect(
      opened.contents.challenge
        == .custom(
          CustomChallenge(
            authenticator: "number", fallback: nil, input: .external(hold: false),
            server: AuthenticatorChallenge.host(ofIssuer: FakeServer.url), challenge: challenge.digest,
            registration: [7, 8])))
  }

  @Test("The driver's data is sent, with a proof by the authenticator's own key") func data() async throws {
    let adapter = try await registered()
    try server.serve(JSON.encode(request))
    let answer = try await content(
      adapter.open(server.pending).answered(
        by: Gesture(.authenticator, held: .zero), data: AuthenticatorData(SecretBytes(copying: [5, 6])),
        after: .seconds(1), idempotencyKey: "K"), adapter)
    #expect(answer.decision == .accept && answer.gesture.kind == .authenticator && answer.authenticator == "number")
    #expect(answer.customData == [5, 6].base64 && answer.underlyingError == nil)
    let claim = AuthenticatorClaim(
      nonce: [UInt8](repeating: 7, count: 32), requestSHA256: SHA256.hash(JSON.encode(request)), decision: .accept,
      authenticator: "number", data: [5, 6])
    let key = try KnowledgeKey(
      refreshToken: token, clientID: FakeServer.clientID, profileID: "PROFIL", authenticator: "number")
    #expect(claim.isProved(by: try #require(answer.authenticatorProof.flatMap(bytes(base64URL:))), try key.publicKey))
  }

  @Test("An alternative that is registered here is asked, and its approval says what it replaces")
  func alternative() async throws {
    let adapter = try await registered()
    var request = request
    (request.method, request.authenticator) = (.pushWithFingerprint, "finger")
    request.alternatives = [
      .init(authenticator: "unknown", method: .pushWithCustomAuthenticator),
      .init(authenticator: "number", method: .pushWithFingerprint),
      .init(authenticator: "number", method: .pushWithCustomAuthenticator),
    ]
    try server.serve(JSON.encode(request))
    let opened = try await adapter.open(server.pending)
    guard case .custom(let challenge) = opened.contents.challenge else {
      Issue.record("\(opened.contents.challenge)")
      return
    }
    #expect(challenge.sources.map(\.authenticator) == ["number"] && opened.contents.type == "login, with number")
    var expected = AuthenticatorChallenge(
      for: .push, issuer: request.iss, clientID: request.clientID, profileID: request.profileID,
      authenticator: "number", nonce: request.nonce)
    (expected.transactionID, expected.decision) = (request.transactionID, "accept")
    expected.requestSHA256 = SHA256.hash(JSON.encode(request)).base64URL
    expected.messageSHA256 = AuthenticatorChallenge.digest(ofMessage: request.message)
    #expect(challenge.sources.map(\.challenge) == [expected.digest])
    let answer = try await content(
      opened.answered(
        by: Gesture(.authenticator, held: .zero), with: "number",
        data: AuthenticatorData(SecretBytes(copying: [5, 6])), after: .seconds(1), idempotencyKey: "K"), adapter)
    #expect(answer.methodUsed == .pushWithCustomAuthenticator && answer.fallbackFrom == .pushWithFingerprint)
    #expect(answer.authenticator == "number" && answer.customData == [5, 6].base64)
    for other in ["finger", "unknown"] {
      #expect(
        opened.answered(
          by: Gesture(.authenticator, held: .zero), with: other, data: AuthenticatorData(SecretBytes(copying: [5])),
          after: .zero, idempotencyKey: "K") == nil)
    }
  }

  /// Fails if one correctly signed request starts as many programs as it has copies.
  @Test("An alternative that a request repeats is one source") func copies() async throws {
    let adapter = try await registered()
    var request = request
    request.authenticator = "unknown"
    let alternative = ApprovalRequest.Alternative(authenticator: "number", method: .pushWithCustomAuthenticator)
    request.alternatives = [ApprovalRequest.Alternative](repeating: alternative, count: 300)
    try server.serve(JSON.encode(request))
    guard case .custom(let challenge) = try await adapter.open(server.pending).contents.challenge else {
      Issue.record("nothing can be asked")
      return
    }
    #expect(challenge.sources.map(\.authenticator) == ["number"])
  }

  @Test("A cancellation is a signed denial with its reason, and without a proof") func cancellation() async throws {
    let adapter = try await registered()
    try server.serve(JSON.encode(request))
    let answer = try await content(
      adapter.open(server.pending).answered(
        by: Gesture(.authenticatorCancel, held: .zero), underlyingError: "the badge is blocked", after: .seconds(1),
        idempotencyKey: "K"), adapter)
    #expect(answer.decision == .deny && answer.reason == .canceled && answer.gesture.kind == .authenticator)
    #expect(answer.underlyingError == "the badge is blocked")
    #expect(answer.authenticatorProof == nil && answer.customData == nil && answer.pinProof == nil)
  }

  @Test("Neither a typed code nor a hold is the data of a driver", arguments: [Gesture.Kind.enter, .hold])
  func otherGestures(kind: Gesture.Kind) async throws {
    let adapter = try await registered()
    try server.serve(JSON.encode(request))
    let opened = try await adapter.open(server.pending)
    let response = opened.answered(
      by: Gesture(kind, held: .seconds(1)), data: AuthenticatorData(SecretBytes(copying: [5])), after: .zero,
      idempotencyKey: "K")
    #expect(response == nil)
  }
}
