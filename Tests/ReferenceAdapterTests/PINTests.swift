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

/// PINs over the network: the data that the server receives and that the token stores.
@Suite(.timeLimit(.minutes(5))) struct PINTests {
  private let server: FakeServer
  private let http: RecordingHTTPTransport
  /// The refresh token `RT`.
  private let token = SecretBytes(copying: Array(0..<32))
  private static let cheap = Scrypt.Parameters(cost: 16, blockSize: 1, parallelization: 1)

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
  }

  private func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

  private func protected(_ digits: String, _ token: SecretBytes) throws -> ProtectedToken {
    try ProtectedToken(token, under: pin(digits), binding: FakeServer.pinBinding, parameters: Self.cheap)
  }

  private func enrolled() throws -> ReferenceServerClient {
    try server.adapter(http, pin: AccountPIN(protected("13579", token)))
  }

  private func publicKey(_ token: SecretBytes) throws -> Ed25519.PublicKey {
    try KnowledgeKey(refreshToken: token, clientID: FakeServer.clientID, profileID: "PROFIL").publicKey
  }

  private func request(attempt: Int? = nil) -> ApprovalRequest {
    var request = server.request()
    request.method = .pushWithPIN
    request.attempt = attempt
    request.maxFailureCount = 3
    request.previousFailureCount = 1
    request.remainingFailureCount = 2
    return request
  }

  private static let counts = FailureCounts(max: 3, previous: 1)!

  private static let wrong: Problem = {
    var problem = Problem(.pinIncorrect, issuer: FakeServer.url)
    problem.maxFailureCount = 3
    problem.previousFailureCount = 2
    problem.remainingFailureCount = 1
    return problem
  }()

  @Test("An answer is proved by whatever was typed", arguments: [("13579", true), ("13578", false)])
  func anAnswerIsProvedByWhateverWasTyped(typed: String, isRight: Bool) async throws {
    let adapter = try enrolled()
    try server.serve(JSON.encode(request(attempt: 2)))
    server.on("/requests/\(FakeServer.transaction)/answers") { _ in
      HTTPResponse(status: 200, body: JSON.encode(RequestStatus(state: .authenticated, receipt: "R")))
    }
    try await server.withHandler(adapter) { panel in
      await panel.until(challenges: 1)
      #expect(panel.prompts == [.digits(count: 5)])
      panel.perform(.typed(typed))
      await panel.until(showing: .idle(pending: 0))
    }
    let posted = try #require(http.requests.last { $0.url.hasSuffix("/answers") })
    let sealed = try JSON.decode(SealedAnswer.self, from: posted.body)
    let message = try #require(bytes(base64: sealed.answer))
    let answer = try JSON.decode(
      ApprovalAnswer.self, from: server.server.open(message, from: server.token.certificate))
    #expect(answer.methodUsed == .pushWithPIN && answer.attempt == 2 && answer.gesture.kind == .enter)
    let claim = ApprovalClaim(
      nonce: [UInt8](repeating: 7, count: 32), requestSHA256: SHA256.hash(JSON.encode(request(attempt: 2))),
      decision: .accept)
    let proof = try #require(answer.pinProof.flatMap(bytes(base64URL:)))
    let key = try publicKey(token)
    #expect(claim.isProved(by: proof, key) == isRight)
  }

  @Test("A wrong PIN is asked for again and a denial needs none") func aWrongPINIsAskedForAgainAndADenialNeedsNone()
    async throws
  {
    let adapter = try enrolled()
    try server.serve(JSON.encode(request()))
    let answers = Counter()
    server.on("/requests/\(FakeServer.transaction)/answers") { _ in
      answers.increment() == 1
        ? HTTPResponse(status: 422, body: JSON.encode(Self.wrong))
        : HTTPResponse(status: 200, body: JSON.encode(RequestStatus(state: .rejected, receipt: "R")))
    }
    try await server.withHandler(adapter) { panel in
      await panel.until(challenges: 1)
      panel.perform(.typed("00000"))
      await panel.until(challenges: 2)
      #expect(panel.shown.contains(.pinWrong(remaining: 1)))
      panel.perform(.gesture(Gesture(.doublePress, held: .milliseconds(100))))
      await panel.until(showing: .idle(pending: 0))
    }
    let bodies = try http.requests.filter { $0.url.hasSuffix("/answers") }.map { request in
      let message = try #require(bytes(base64: JSON.decode(SealedAnswer.self, from: request.body).answer))
      return try JSON.decode(ApprovalAnswer.self, from: server.server.open(message, from: server.token.certificate))
    }
    #expect(bodies.map { $0.pinProof == nil } == [false, true])
    #expect(bodies.map(\.decision) == [.accept, .deny])
  }

  @Test(
    "A challenge without sense in its counts is refused",
    arguments: [
      (nil, nil), (3, nil), (0, 0), (3, 4), (3, -1), (1_000_000, 1),
    ])
  func aChallengeWithoutSenseInItsCountsIsRefused(max: Int?, previous: Int?) async throws {
    let adapter = try enrolled()
    var request = request()
    request.maxFailureCount = max
    request.previousFailureCount = previous
    try server.serve(JSON.encode(request))
    let fault = await #expect(throws: TokenServerError.self) { try await adapter.open(server.pending) }
    #expect(fault?.number == 10018)
  }

  @Test("An account without a PIN answers no request for one") func accountWithoutPINAnswersNoRequestForOne()
    async throws
  {
    let adapter = try server.adapter(http)
    try server.serve(JSON.encode(request()))
    let obstacle = try await adapter.open(server.pending).contents.challenge.obstacle
    #expect(obstacle == "it needs push_with_pin, and the account has no PIN")
    await #expect(throws: TokenServerError.refused("account A has no PIN")) {
      try await adapter.logIn(AccountID("A"), typing: pin("13579"))
    }
  }

  /// Fails if `status` shows attempts from before a wrong PIN at a login.
  @Test("A login makes the listed message outdated") func loginDiscards() async throws {
    let adapter = try enrolled()
    let transaction = try #require(TransactionID(FakeServer.transaction))
    let listed = adapter.listedMessage
    listed.put("A", of: transaction, askedAt: server.clock.now, listed.ticket)
    server.on("/configuration", "{}")
    server.on("/oauth/token") { request in
      guard String(decoding: request.body, as: UTF8.self).contains("grant-type%3Ajwt-bearer") else {
        let device = AccessTokenResponse(accessToken: "D", expiresIn: 900, scope: .device)
        return HTTPResponse(status: 200, body: JSON.encode(device))
      }
      return HTTPResponse(status: 400, body: Array(#"{"error":"invalid_grant"}"#.utf8))
    }
    await #expect(throws: TokenServerError.self) { try await adapter.logIn(AccountID("A"), typing: pin("13579")) }
    #expect(listed.take(of: transaction, at: server.clock.now) == nil)
  }

  @Test("A lost login is repeated as the same attempt") func aLostLoginIsRepeatedAsTheSameAttempt() async throws {
    let adapter = try enrolled()
    // The client asked for the time first, because the board's clock is not set.
    server.on("/configuration", "{}")
    let calls = Counter()
    server.on("/oauth/token") { request throws(HTTPTransportError) in
      guard String(decoding: request.body, as: UTF8.self).contains("grant-type%3Ajwt-bearer") else {
        let device = AccessTokenResponse(accessToken: "D", expiresIn: 900, scope: .device)
        return HTTPResponse(status: 200, body: JSON.encode(device))
      }
      if calls.increment() == 1 { throw .timedOut(after: .seconds(15)) }
      let user = AccessTokenResponse(accessToken: "U", expiresIn: 900, scope: .user, profileID: "PROFIL")
      return HTTPResponse(status: 200, body: JSON.encode(user))
    }
    async let session = adapter.logIn(AccountID("A"), typing: pin("13579"))
    await server.clock.untilAsleep()
    server.clock.advance(by: .seconds(1))
    #expect(try await session.account == AccountID("A"))
    let forms = http.requests.filter { $0.url.hasSuffix("/oauth/token") }.map {
      String(decoding: $0.body, as: UTF8.self)
    }.filter { $0.contains("grant-type%3Ajwt-bearer") && $0.contains("assertion=") }
    let assertions = Set(
      forms.compactMap { form in
        form.split(separator: "&").first { $0.hasPrefix("assertion=") }.map { $0.dropFirst("assertion=".count) }
      })
    #expect(forms.count >= 2)
    #expect(assertions.count == 1)
    let text = String(try #require(assertions.first))
    let assertion = try KnowledgeAssertion(
      parsing: text, clientID: FakeServer.clientID, profileID: "PROFIL", audience: FakeServer.url + "/oauth/token",
      now: 1_795_219_200)
    let key = try publicKey(token)
    #expect(assertion.isSigned(by: key))
  }

  enum AfterTheCut: CaseIterable {
    case validation, request, login
  }

  @Test(
    "An identifier of a PIN change that is no UUID is refused",
    arguments: [("", 1), ("../x", 1), ("c", 99_999)])
  func changeIDs(text: String, repeats: Int) async throws {
    let id = String(repeating: text, count: repeats)
    let adapter = try enrolled()
    server.serveChange(of: SecretBytes(copying: Array(100..<132)), id: id)
    await #expect(throws: TokenServerError.unreachable("the token server's \"change_id\" is no UUID")) {
      try await adapter.beginPINChange(AccountID("A"), typing: pin("13579"), session: nil)
    }
  }

  /// The new PIN has one digit more because the policy changed in between.
  @Test(
    "After a connection loss the server says which PIN counts",
    arguments: [("committed", "246802"), ("void", "13579"), ("pending", "13579")], AfterTheCut.allCases)
  func afterAConnectionLossTheServerSaysWhichPINCounts(decision: (state: String, right: String), next step: AfterTheCut)
    async throws
  {
    let adapter = try enrolled()
    let next = SecretBytes(copying: Array(100..<132))
    server.serveChange(of: next, length: 6)
    // The response to the commit is lost, and so are those of its repeats.
    server.on("/profiles/PROFIL/pin-changes/\(FakeServer.changeID)/commit") { _ throws(HTTPTransportError) in
      throw .timedOut(after: .seconds(15))
    }
    let ticket = try await adapter.beginPINChange(AccountID("A"), typing: pin("13579"), session: nil)
    let finishing = Task { try await adapter.finishPINChange(ticket, choosing: pin("246802"), parameters: Self.cheap) }
    for _ in ReferenceServerClient.pauses {
      await server.clock.untilAsleep()
      server.clock.advance(by: .seconds(2))
    }
    await #expect(throws: TokenServerError.self) { try await finishing.finished() }

    server.on("/profiles/PROFIL/pin-changes/\(FakeServer.changeID)", #"{"state":"\#(decision.state)"}"#)
    // A start queries the server; so does every operation that needs the PIN before that.
    let asking = step == .validation ? try server.reopened(http) : adapter
    switch step {
    case .validation:
      server.on(
        "/validations",
        """
        {"configuration":{"transports":["sse"],"openpgp_profiles":[],"minimum_software_version":"0","pin_required":true,
        "server_time_ms":1},"removed_profiles":[],"disenrolled_profiles":[]}
        """)
      _ = try await asking.validate()
    case .request:
      try server.serve(JSON.encode(request()))
      let opened = try await asking.open(server.pending)
      #expect(opened.contents.challenge == .pin(PINChallenge(length: decision.right.count, counts: Self.counts)))
    case .login:
      #expect(try await asking.pinLength(of: AccountID("A")) == decision.right.count)
    }
    let expected = try publicKey(decision.state == "committed" ? next : token)
    for known in [asking, try server.reopened(http)] {
      let account = try known.account(AccountID("A"))
      #expect(account.pin?.current.length == decision.right.count)
      #expect(try known.open(account, typed: pin(decision.right)).key.publicKey == expected)
      // While the outcome is unknown, nothing is deleted.
      #expect((account.pin?.next != nil) == (decision.state == "pending"))
    }
  }

  @Test("A request is not opened while it is unknown which PIN counts")
  func requestIsNotOpenedWhileItIsUnknownWhichPINCounts() async throws {
    var pin = AccountPIN(try protected("13579", token))
    pin.next = AccountPIN.Change(
      id: FakeServer.changeID, token: try protected("24680", SecretBytes(copying: Array(100..<132))))
    let adapter = try server.adapter(http, pin: pin)
    try server.serve(JSON.encode(request()))
    server.on("/profiles/PROFIL/pin-changes/\(FakeServer.changeID)") { _ throws(HTTPTransportError) in
      throw .timedOut(after: .seconds(15))
    }
    await #expect { try await adapter.open(server.pending) } throws: { error in
      (error as? TokenServerError)?.effect == .retry
    }
    #expect(try adapter.account(AccountID("A")).pin?.next != nil)
  }

  @Test("The longest block list that a server may have is accepted") func longestBlockList() throws {
    let policy = PINPolicyDescription(
      length: 5, maxRepeats: nil, sequencesAllowed: false,
      blockList: Array(repeating: "28064", count: PINPolicyDescription.longestBlockList), maxFailureCount: 3)
    _ = try PINPolicy(policy)
    #expect(PINPolicyDescription.longestBlockList == PINPolicy.longestBlockList)
  }
}
