// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import OpenPGP
import PINProtection
import ReferenceProtocol
import Secrets
import Testing

@testable import ReferenceAdapter

/// Requests for methods that this token does not support.
@Suite(.timeLimit(.minutes(5))) struct FallbackTests {
  private static let methods: [ApprovalRequest.Method] = [
    .pushWithFingerprint, .pushWithCustomAuthenticator, .other("push_with_iris"),
  ]
  private static let answers = "/requests/\(FakeServer.transaction)/answers"

  private let server: FakeServer
  private let http: RecordingHTTPTransport
  /// The refresh token of the PIN.
  private let token = SecretBytes(copying: Array(0..<32))

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
  }

  private func adapter(hasPIN: Bool = true) throws -> ReferenceServerClient {
    let parameters = Scrypt.Parameters(cost: 16, blockSize: 1, parallelization: 1)
    let pin = PIN(digits: SecretBytes(copying: Array("13579".utf8)))
    return try server.adapter(
      http,
      pin: hasPIN
        ? AccountPIN(try ProtectedToken(token, under: pin, binding: FakeServer.pinBinding, parameters: parameters))
        : nil)
  }

  private func request(
    _ method: ApprovalRequest.Method, fallbacks: [String]? = ["push_with_pin"], attempt: Int = 1, nonce: UInt8 = 7,
    failures: Int = 1
  ) -> ApprovalRequest {
    var request = server.request()
    request.method = method
    (request.authenticator, request.fallbacks) = ("finger", fallbacks)
    request.nonce = [UInt8](repeating: nonce, count: 32).base64URL
    request.attempt = attempt
    (request.maxFailureCount, request.previousFailureCount, request.remainingFailureCount) = (3, failures, 3 - failures)
    return request
  }

  private func confirm(_ state: RequestState) {
    server.on(Self.answers) { _ in
      HTTPResponse(status: 200, body: JSON.encode(RequestStatus(state: state, receipt: "R")))
    }
  }

  private func sent() throws -> [ApprovalAnswer] {
    try http.requests.filter { $0.url.hasSuffix("/answers") }.map { request in
      let message = try #require(bytes(base64: JSON.decode(SealedAnswer.self, from: request.body).answer))
      return try JSON.decode(ApprovalAnswer.self, from: server.server.open(message, from: server.token.certificate))
    }
  }

  @Test("A method that the token does not support is answered with the PIN", arguments: methods)
  func methodIsAnsweredWithThePIN(method: ApprovalRequest.Method) async throws {
    let adapter = try adapter()
    let request = request(method)
    try server.serve(JSON.encode(request))
    let opened = try await adapter.open(server.pending)
    #expect(opened.contents.challenge == .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 1))))
    #expect(opened.contents.type == "login, with the PIN instead of \(method.rawValue)")
    confirm(.authenticated)
    try await server.withHandler(adapter) { panel in
      await panel.until(challenges: 1)
      #expect(panel.prompts == [.digits(count: 5)])
      #expect(!panel.shown.contains { if case .pinWrong = $0 { true } else { false } })
      // The fallback alone sends nothing: it takes no attempt.
      #expect(http.requests.allSatisfy { $0.url.hasSuffix("/message") || $0.url.hasSuffix("/oauth/token") })
      panel.perform(.typed("13579"))
      await panel.until(showing: .idle(pending: 0))
    }
    let answer = try #require(try sent().first)
    #expect(answer.methodUsed == .pushWithPIN && answer.fallbackFrom == method && answer.attempt == 1)
    #expect(answer.authenticator == nil && answer.authenticatorProof == nil && answer.customData == nil)
    let claim = ApprovalClaim(
      nonce: [UInt8](repeating: 7, count: 32), requestSHA256: SHA256.hash(JSON.encode(request)), decision: .accept)
    let proof = try #require(answer.pinProof.flatMap(bytes(base64URL:)))
    let key = try KnowledgeKey(refreshToken: token, clientID: FakeServer.clientID, profileID: "PROFIL").publicKey
    #expect(claim.isProved(by: proof, key))
  }

  @Test("A denial names the request's method and needs no PIN", arguments: methods)
  func denialNamesTheMethod(method: ApprovalRequest.Method) async throws {
    let adapter = try adapter()
    try server.serve(JSON.encode(request(method)))
    confirm(.rejected)
    try await server.withHandler(adapter) { panel in
      await panel.until(challenges: 1)
      panel.perform(.gesture(Gesture(.doublePress, held: .milliseconds(100))))
      await panel.until(showing: .idle(pending: 0))
    }
    let answer = try #require(try sent().first)
    #expect(answer.decision == .deny && answer.methodUsed == method)
    #expect(answer.fallbackFrom == nil && answer.pinProof == nil)
  }

  @Test("After a wrong PIN, the fallback has the new nonce, attempt and counts") func wrongPINOfAFallback() async throws
  {
    let adapter = try adapter()
    try server.serve(JSON.encode(request(.pushWithFingerprint)))
    var wrong = Problem(.pinIncorrect, issuer: FakeServer.url)
    (wrong.maxFailureCount, wrong.previousFailureCount, wrong.remainingFailureCount) = (3, 2, 1)
    let (count, body) = (Counter(), JSON.encode(wrong))
    server.on(Self.answers) { _ in
      count.increment() == 1
        ? HTTPResponse(status: 422, body: body)
        : HTTPResponse(status: 200, body: JSON.encode(RequestStatus(state: .authenticated, receipt: "R")))
    }
    try await server.withHandler(adapter) { panel in
      await panel.until(challenges: 1)
      try server.serve(JSON.encode(request(.pushWithFingerprint, attempt: 2, nonce: 8, failures: 2)))
      panel.perform(.typed("00000"))
      await panel.until(challenges: 2)
      #expect(panel.shown.contains(.pinWrong(remaining: 1)))
      panel.perform(.typed("13579"))
      await panel.until(showing: .idle(pending: 0))
    }
    let answers = try sent()
    #expect(answers.map(\.attempt) == [1, 2])
    #expect(answers.map(\.nonce) == [7, 8].map { [UInt8](repeating: $0, count: 32).base64URL })
    #expect(answers.allSatisfy { $0.methodUsed == .pushWithPIN && $0.fallbackFrom == .pushWithFingerprint })
  }

  @Test(
    "Without the PIN, such a request can only be denied",
    arguments: [
      ("does not allow the PIN", nil, true, true), ("does not allow the PIN", ["push_with_voice"], true, true),
      ("the account has no PIN", ["push_with_pin"], false, true),
      ("there is no keypad", ["push_with_pin"], true, false),
    ] as [(String, [String]?, Bool, Bool)])
  func withoutThePIN(why: String, fallbacks: [String]?, hasPIN: Bool, hasKeypad: Bool) async throws {
    _ = try adapter(hasPIN: hasPIN)
    let adapter = try server.reopened(
      http, capabilities: ApprovalCapabilities(display: .none, keypad: hasKeypad, button: true, led: .rgb))
    for method in Self.methods {
      try server.serve(JSON.encode(request(method, fallbacks: fallbacks)))
      let opened = try await adapter.open(server.pending)
      let obstacle = try #require(opened.contents.challenge.obstacle)
      #expect(obstacle.contains(why) && obstacle.contains(method.rawValue))
      #expect(opened.contents.type == "login, can only be denied: \(obstacle)")
    }
    confirm(.rejected)
    try await server.withHandler(adapter) { panel in
      await panel.until(challenges: 1)
      #expect(panel.prompts == [.denial])
      panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
      panel.perform(.typed("13579"))
      panel.perform(.gesture(Gesture(.doublePress, held: .milliseconds(100))))
      await panel.until(showing: .idle(pending: 0))
    }
    #expect(try sent().map(\.decision) == [.deny])
  }

  @Test("A request for a PIN that the account does not have can only be denied") func requestForAMissingPIN()
    async throws
  {
    let adapter = try adapter(hasPIN: false)
    try server.serve(JSON.encode(request(.pushWithPIN, fallbacks: nil)))
    #expect(try await adapter.open(server.pending).contents.challenge.obstacle?.contains("has no PIN") == true)
  }

  @Test("The server is notified that a request cannot be opened") func unopenedRequestIsDenied() async throws {
    let adapter = try adapter()
    let status = JSON.encode(RequestStatus(state: .rejected, receipt: "R"))
    server.on("/requests/\(FakeServer.transaction)/denials") { _ in HTTPResponse(status: 200, body: status) }
    for why in ["forged\u{1B}[31m", String(repeating: "é", count: 1000)] {
      try await adapter.deny(unopened: server.pending, because: why, idempotencyKey: "K")
      let sent = try #require(http.requests.last)
      #expect(sent.url.hasSuffix("/denials") && sent.headers["Idempotency-Key"] == "K")
      let denial = try JSON.decode(Denial.self, from: sent.body)
      #expect(denial.reason == .canceled)
      let text = try #require(denial.underlyingError)
      #expect(text.utf8.count <= 256 && !text.contains("\u{1B}"))
    }
  }
}
