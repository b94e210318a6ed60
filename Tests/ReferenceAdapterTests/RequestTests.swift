// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import OpenPGP
import ReferenceProtocol
import Secrets
import Testing

@testable import MobileAuth
@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct RequestTests {
  private let server: FakeServer

  init() throws { server = try FakeServer() }

  private func adapter() throws -> ReferenceServerClient { try server.adapter(server.makeHTTPTransport()) }

  @Test("A sealed request is opened and verified") func aSealedRequestIsOpenedAndVerified() async throws {
    try server.serve(JSON.encode(server.request()))
    let request = try await adapter().open(server.pending)
    #expect(request.contents.type == "login")
    #expect(request.contents.texts?.message == "m")
  }

  private func refusal(_ change: (inout ApprovalRequest) -> Void) async throws -> TokenServerError? {
    var request = server.request()
    change(&request)
    try server.serve(JSON.encode(request))
    do {
      _ = try await adapter().open(server.pending)
      return nil
    } catch { return error as? TokenServerError }
  }

  @Test("A request for another device is not handled") func requestForAnotherDeviceIsNotHandled() async throws {
    let changes: [(inout ApprovalRequest) -> Void] = [
      { $0.v = 2 }, { $0.iss = "https://evil.example" }, { $0.clientID = String(repeating: "B", count: 64) },
      { $0.profileID = "OTHERS" }, { $0.transactionID = "00000000-0000-4000-8000-000000000002" },
      { $0.transactionID = "1" }, { $0.nonce = "short" }, { $0.nonce = "" },
      { $0.method = .other(String(repeating: "m", count: 65)) },
    ]
    for change in changes {
      let fault = try await refusal(change)
      #expect(fault?.number == 10018, "\(String(describing: fault))")
    }
  }

  @Test("A forged message releases nothing") func aForgedMessageReleasesNothing() async throws {
    let stranger = try OpenPGPKey.generate(userID: "stranger")
    let plaintext = JSON.encode(server.request())
    try server.serve(plaintext, from: stranger)
    await #expect(throws: TokenServerError.self) { try await adapter().open(server.pending) }
    try server.serve(plaintext, to: stranger.certificate)
    await #expect(throws: TokenServerError.self) { try await adapter().open(server.pending) }
    try server.serve(Array("not JSON".utf8))
    await #expect(throws: TokenServerError.self) { try await adapter().open(server.pending) }
    try server.serve(Array(String(repeating: "[", count: 100_000).utf8))
    await #expect(throws: TokenServerError.self) { try await adapter().open(server.pending) }
    for body in [
      #"{"message":"%%%","expires_in_ms":1}"#, #"{"message":"","expires_in_ms":1}"#,
      #"{"message":"AAAA","expires_in_ms":1}"#,
    ] {
      server.on("/requests/\(FakeServer.transaction)/message", body)
      await #expect(throws: TokenServerError.self) { try await adapter().open(server.pending) }
    }
  }

  @Test("An access token that is refused while a request is opened or answered does not end the request")
  func refusedAccessTokenIsTriedAgain() async throws {
    server.on("/oauth/token", status: 400, #"{"error":"invalid_request","error_description":"d"}"#)
    try server.serve(JSON.encode(server.request()))
    let adapter = try adapter()
    let opening = await fault { _ = try await adapter.open(server.pending) }
    #expect(opening?.effect == .retry)
    let asking = await fault {
      _ = try await adapter.status(of: server.pending.transaction, account: AccountID("A"))
    }
    #expect(asking?.effect == .retry)
  }

  private func fault(of body: () async throws -> Void) async -> TokenServerError? {
    do {
      try await body()
      return nil
    } catch { return error as? TokenServerError }
  }

  @Test(
    "Each validation sends the board's capabilities, if they are known",
    arguments: [
      nil, ApprovalCapabilities(display: .none, keypad: true, button: true, led: .mono),
    ])
  func validationHasTheCapabilities(capabilities: ApprovalCapabilities?) async throws {
    let http = server.makeHTTPTransport()
    _ = try server.adapter(http)
    server.on(
      "/validations",
      #"{"configuration":{"transports":["sse"],"openpgp_profiles":[],"minimum_software_version":"0","#
        + #""pin_required":true,"server_time_ms":1},"removed_profiles":[],"disenrolled_profiles":[]}"#)
    _ = try await server.reopened(http, capabilities: capabilities).validate()
    let request = try #require(http.requests.last { $0.url.hasSuffix("/validations") })
    #expect(try JSON.decode(ValidationRequest.self, from: request.body).approvalCapabilities == capabilities)
  }

  @Test("The server is notified of the removal of an account that must be enrolled again")
  func lapsedAccountIsDeregistered()
    async throws
  {
    let http = server.makeHTTPTransport()
    _ = try server.adapter(http)
    var record = try #require(try server.registry.accounts().first)
    record.stage = .mustEnrollAgain
    record.secrets = SecretBytes(copying: [])
    try server.registry.put(record, nil)
    server.on("/profiles/PROFIL", status: 204, "")
    try await server.reopened(http).deregister(AccountID("A"))
    #expect(http.requests.last?.method == .delete)
    #expect(http.requests.last?.url.hasSuffix("/profiles/PROFIL") == true)
  }

  @Test("The list shows only what is ours") func theListShowsOnlyWhatIsOurs() async throws {
    func entry(_ id: String, profile: String = "PROFIL", expires: Int64 = 5) -> PendingEntry {
      PendingEntry(
        transactionID: id, profileID: profile, message: nil, typeHint: "login", sentAtMs: 1, timeToLiveMs: 60_000,
        expiresInMs: expires)
    }
    let good = FakeServer.transaction
    let list = PendingList(
      serverTimeMs: 1,
      requests: [
        entry(good), entry("../..", profile: "PROFIL"), entry(good, profile: "OTHERS"), entry(good, expires: -1),
        entry(good, expires: .max),
      ])
    server.on("/pending") { _ in HTTPResponse(status: 200, body: JSON.encode(list)) }
    let pending = try await adapter().pendingRequests()
    #expect(pending.map(\.transaction.text) == [good])
    #expect(pending[0].deadline == server.clock.now + .milliseconds(5))
  }

  /// The protocol has no word for the deny button.
  @Test("A denial by the deny button is sent as a double press") func denyButtonIsSentAsDoublePress() async throws {
    try server.serve(JSON.encode(server.request()))
    let adapter = try adapter()
    let denied = try await adapter.open(server.pending).answered(
      by: Gesture(.denyButton, held: .milliseconds(200)), after: .seconds(1), idempotencyKey: Random.uuid())
    let body = try await adapter.seal(#require(denied)).body
    let message = try #require(bytes(base64: JSON.decode(SealedAnswer.self, from: body).answer))
    let answer = try JSON.decode(
      ApprovalAnswer.self, from: server.server.open(message, from: server.token.certificate))
    #expect(answer.decision == .deny && answer.reason == .declined)
    #expect(answer.gesture.kind == .doublePress && answer.gesture.heldMs == 200)
  }

  /// Fails if a list that is too long disconnects the token.
  @Test("The newest entries of a pending list that is too long are shown", arguments: [0, 1, 40, 301, 1000])
  func beginningOfLongListIsShown(cut: Int) async throws {
    let entries = (1...5).map { number in
      PendingEntry(
        transactionID: "00000000-0000-4000-8000-00000000000\(number)", profileID: "PROFIL",
        message: #"a "}]{[\ "#, typeHint: "login", sentAtMs: 1, timeToLiveMs: 60_000, expiresInMs: 5)
    }
    let whole = JSON.encode(PendingList(serverTimeMs: 1, requests: entries))
    let kept = min(cut, whole.count)
    server.on("/pending") { request in
      var response = HTTPResponse(status: 200, body: Array(whole.prefix(kept)))
      response.isTruncated = request.takesBeginning
      return response
    }
    let shown = try await adapter().pendingRequests().map(\.transaction.text)
    #expect(shown == Array(entries.map(\.transactionID).prefix(shown.count)))
    let one = JSON.encode(entries[0]).count
    #expect(shown.count == (kept >= whole.count ? 5 : max(0, (kept - #"{"requests":["#.utf8.count + 1) / (one + 1))))
  }

  @Test("Of a list that is too long no more than its first thousand entries are decoded") func endlessList() {
    let entry = JSON.encode(
      PendingEntry(
        transactionID: "t", profileID: "PROFIL", message: "m", typeHint: "login", sentAtMs: 1, timeToLiveMs: 1,
        expiresInMs: 5))
    func found(after empty: Int) -> Int {
      let entries = Array(repeating: Array("{}".utf8), count: empty) + Array(repeating: entry, count: 20)
      return PendingEntries.whole(in: Array(#"{"requests":["#.utf8) + entries.joined(separator: Array(",".utf8))).count
    }
    #expect(found(after: PendingEntries.most - 10) == 10)
    #expect(found(after: 300_000) == 0)
  }

  /// A complete run through the domain, checking the answer as the server does.
  @Test("An answer says who what and how and repeats are the same bytes")
  func anAnswerSaysWhoWhatAndHowAndRepeatsAreTheSameBytes() async throws {
    let http = server.makeHTTPTransport()
    let adapter = try server.adapter(http)
    try server.serve(JSON.encode(server.request()))
    let attempts = Counter()
    server.on("/requests/\(FakeServer.transaction)/answers") { _ throws(HTTPTransportError) in
      if attempts.increment() == 1 { throw .timedOut(after: .seconds(15)) }
      return HTTPResponse(status: 200, body: JSON.encode(RequestStatus(state: .authenticated, receipt: "R")))
    }
    let stateStore = MemoryStateStore()
    let panel = ScriptedPanel()
    let inbox = Inbox(in: server.environment)
    let handler = Handler(
      servers: [adapter], inbox: inbox, panelTasks: PanelTaskQueue(changes: inbox.changes), panel: panel,
      stateStore: stateStore, mustEnroll: false, in: server.environment)
    inbox.connectivity.set(.connected, to: adapter.id)
    inbox.replace(requestsOf: adapter.id, with: [server.pending])
    let running = Task { try await handler.run() }
    await panel.until(challenges: 1)
    panel.perform(.gesture(Gesture(.hold, held: .milliseconds(900))))
    await panel.until(showing: .outcomeUnknown)
    // The panel's time limit, and the pause before the next attempt.
    await server.clock.untilAsleep(2)
    server.clock.advance(by: .seconds(1))
    await panel.until(showing: .idle(pending: 0))
    running.cancel()

    let answers = http.requests.filter { $0.url.hasSuffix("/answers") }
    #expect(answers.count == 2)
    #expect(answers[0].body == answers[1].body)
    #expect(answers[0].headers["Idempotency-Key"] == answers[1].headers["Idempotency-Key"])
    let sealed = try JSON.decode(SealedAnswer.self, from: answers[0].body)
    let message = try #require(bytes(base64: sealed.answer))
    let answer = try JSON.decode(
      ApprovalAnswer.self, from: server.server.open(message, from: server.token.certificate))
    #expect(answer.aud == FakeServer.url && answer.clientID == FakeServer.clientID && answer.profileID == "PROFIL")
    #expect(answer.requestSHA256 == SHA256.hash(JSON.encode(server.request())).base64URL)
    #expect(answer.nonce == server.request().nonce)
    #expect(answer.decision == .accept && answer.reason == nil && answer.methodUsed == .push)
    #expect(answer.gesture.kind == .hold && answer.gesture.heldMs == 900)
    #expect(stateStore.outcomes(of: server.pending.transaction) == ["approved, receipt R"])
  }
}
