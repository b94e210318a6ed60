// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import OpenPGP
import ReferenceProtocol
import Testing

@testable import MobileAuth
@testable import ReferenceAdapter

/// The newest request's message in the pending list: one exchange from the hint to the opened request.
@Suite("The message in the pending list", .timeLimit(.minutes(1))) struct ListedMessageTests {
  private let server: FakeServer
  private let http: RecordingHTTPTransport
  private let adapter: ReferenceServerClient

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
    adapter = try server.adapter(http)
    try server.serve(JSON.encode(server.request()))
  }

  /// Lists the request, with its message if the token asks for it and the server knows that.
  private func list(
    signedBy signer: OpenPGPKey? = nil, as message: String? = nil, knowsMessages: Bool = true
  ) throws {
    let key = signer ?? server.server
    let sealed = try message ?? key.seal(JSON.encode(server.request()), to: server.token.certificate).base64
    @Sendable func list(_ message: String?) -> HTTPResponse {
      let entry = PendingEntry(
        transactionID: FakeServer.transaction, profileID: "PROFIL", message: nil, typeHint: "login", sentAtMs: 1,
        timeToLiveMs: 60_000, expiresInMs: 60_000, sealedMessage: message)
      return HTTPResponse(status: 200, body: JSON.encode(PendingList(serverTimeMs: 1, requests: [entry])))
    }
    if knowsMessages { server.on("/pending?include=message") { _ in list(sealed) } }
    server.on("/pending") { _ in list(nil) }
  }

  private var exchanges: [String] {
    http.requests.map { String($0.url.dropFirst(FakeServer.url.count + "/device/v1".count)) }
  }

  private func listed() async throws -> PendingMobileAuthRequest {
    try #require(try await adapter.pendingRequests().first)
  }

  /// Fails if the request's message is fetched separately.
  @Test("From the hint to the opened request there is one exchange") func oneExchange() async throws {
    try list()
    // The first call of a process gets an access token and a nonce.
    _ = try await adapter.pendingRequests()
    let before = http.requests.count
    let request = try await adapter.open(listed())
    #expect(exchanges.dropFirst(before) == ["/pending?include=message"])
    #expect(request.contents.texts?.message == "m")
  }

  @Test("A server that does not include the message is asked for it") func earlierServer() async throws {
    try list(knowsMessages: false)
    _ = try await adapter.open(listed())
    #expect(exchanges.last == "/requests/\(FakeServer.transaction)/message")
  }

  @Test("The message is used once") func once() async throws {
    try list()
    let pending = try await listed()
    _ = try await adapter.open(pending)
    _ = try await adapter.open(pending)
    #expect(exchanges.count { $0.hasSuffix("/message") && !$0.hasPrefix("/pending") } == 1)
  }

  @Test("A message that is older than 10 s is fetched again") func old() async throws {
    try list()
    let pending = try await listed()
    server.clock.advance(by: ListedMessage.freshness + .milliseconds(1))
    _ = try await adapter.open(pending)
    #expect(exchanges.last == "/requests/\(FakeServer.transaction)/message")
  }

  @Test("The message of another request is not used") func other() async throws {
    try list()
    var pending = try await listed()
    pending.transaction = try #require(TransactionID("00000000-0000-4000-8000-000000000002"))
    await #expect(throws: TokenServerError.self) { try await adapter.open(pending) }
    #expect(exchanges.last?.hasSuffix("2/message") == true)
  }

  /// A wrong PIN changes nonce and counts of the request: the earlier message would lead to a refused answer.
  @Test("An answer makes listed messages invalid", arguments: [true, false]) func answered(isListedBefore: Bool) throws
  {
    let (message, id) = (ListedMessage(), try #require(TransactionID(FakeServer.transaction)))
    let now = server.clock.now
    let ticket = message.ticket
    if isListedBefore { message.put("a", of: id, askedAt: now, ticket) }
    message.discard()
    // The response to a list that was requested before the answer.
    if !isListedBefore { message.put("a", of: id, askedAt: now, ticket) }
    #expect(message.take(of: id, at: now) == nil)
    message.put("b", of: id, askedAt: now, message.ticket)
    #expect(message.take(of: id, at: now) == "b")
  }

  @Test("An answer discards the listed message") func deliveryDiscards() async throws {
    try list()
    let opened = try await adapter.open(listed())
    let accepted = try #require(
      opened.answered(
        by: Gesture(.hold, held: .milliseconds(900)), after: .seconds(1),
        idempotencyKey: "11111111-1111-4111-8111-111111111111"))
    let sealed = try await adapter.seal(accepted)
    let pending = try await listed()
    server.on("/requests/\(FakeServer.transaction)/answers", problem: .pinIncorrect)
    await #expect(throws: TokenServerError.self) { try await adapter.deliver(sealed) }
    _ = try await adapter.open(pending)
    #expect(exchanges.last == "/requests/\(FakeServer.transaction)/message")
  }

  @Test("A listed message is verified like a fetched one") func forged() async throws {
    for message in [nil, "", "%%%", "AAAA"] {
      try list(signedBy: OpenPGPKey.generate(userID: "stranger"), as: message)
      let pending = try await listed()
      let before = exchanges.count
      await #expect(throws: TokenServerError.self) { try await adapter.open(pending) }
      #expect(exchanges.count == before)
    }
  }

  @Test("A message that is too long is fetched") func long() async throws {
    try list(as: String(repeating: "A", count: PendingList.longestMessage + 1))
    _ = try await adapter.open(listed())
    #expect(exchanges.last == "/requests/\(FakeServer.transaction)/message")
  }
}
