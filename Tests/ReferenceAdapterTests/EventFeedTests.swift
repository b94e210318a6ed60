// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import ReferenceProtocol
import Synchronization
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct EventFeedTests {
  private func feed(_ server: FakeServer, _ http: RecordingHTTPTransport) -> EventFeed {
    EventFeed(client: server.client(http), environment: server.environment, memory: EventFeed.Memory())
  }

  private static func stream(_ text: String) -> @Sendable (HTTPRequest) -> HTTPResponseStream {
    { _ in
      HTTPResponseStream(
        status: 200, headers: ["Content-Type": "text/event-stream"],
        body: AsyncThrowingStream { continuation in
          continuation.yield(Array(text.utf8))
          continuation.finish()
        })
    }
  }

  private final class Hints: Sendable {
    private let state = Mutex<[Hint]>([])
    var all: [Hint] { state.withLock { $0 } }
    func add(_ hint: Hint) { state.withLock { $0.append(hint) } }
  }

  @Test("Events become hints and the cursor is remembered") func eventsBecomeHintsAndTheCursorIsRemembered()
    async throws
  {
    let server = try FakeServer(
      stream: Self.stream(
        """
        : beat

        id: 7
        event: request
        data: {"kind":"request","transaction_id":"t","profile_id":"p"}

        id: 8
        data: {"kind":"profile-revoked"}

        id: 9
        data: {"kind":"something-new"}

        id: 10
        data: not JSON


        """))
    let http = server.makeHTTPTransport()
    let feed = feed(server, http)
    let hints = Hints()
    try await feed.run { hints.add($0) }
    // An unknown kind lets the token read the list.
    #expect(hints.all == [.connected, .pendingChanged, .revoked, .pendingChanged])
    #expect(feed.memory.cursor == "10")
    try await feed.run { _ in }
    #expect(http.requests.last { $0.url.hasSuffix("/events") }?.headers["Last-Event-ID"] == "10")
  }

  /// Runs a feed whose stream delivers `text`, and waits at most 3 minutes for `isDone`, named by `what`.
  private func follow(
    _ server: FakeServer, _ client: DeviceClient, stream sending: AsyncThrowingStream<[UInt8], any Error>.Continuation,
    _ text: String, until what: String, _ isDone: (Hints) -> Bool
  ) async throws {
    let (hints, feed) = (
      Hints(), EventFeed(client: client, environment: server.environment, memory: EventFeed.Memory())
    )
    let running = Task { try await feed.run { hints.add($0) } }
    sending.yield(Array(text.utf8))
    try await eventually(what, within: .seconds(180)) { isDone(hints) }
    running.cancel()
    _ = try? await running.finished()
  }

  private func serverWithStream() throws -> (FakeServer, AsyncThrowingStream<[UInt8], any Error>.Continuation) {
    let (events, sending) = AsyncThrowingStream.makeStream(of: [UInt8].self)
    let server = try FakeServer(stream: { _ in
      HTTPResponseStream(status: 200, headers: ["Content-Type": "text/event-stream"], body: events)
    })
    server.on("/x", "{}")
    return (server, sending)
  }

  /// Fails if the first request after a hint is refused because of an old nonce: a round trip more.
  @Test("The nonce of a hint is used for the next request") func nonceOfHint() async throws {
    let (server, sending) = try serverWithStream()
    let http = server.makeHTTPTransport()
    let client = server.client(http)
    _ = try await client.call(.get, "/x")
    server.turnNonce()
    let data = #"{"dpop_nonce":"nonce-2","kind":"resync"}"#
    try await follow(server, client, stream: sending, "data: \(data)\n\n", until: "the hint") { $0.all.count > 1 }
    let before = http.requests.count
    _ = try await client.call(.get, "/x")
    #expect(http.requests.count - before == 1)
    for nonce in ["", String(repeating: "n", count: 513)] { await client.use(nonce: nonce) }
    _ = try await client.call(.get, "/x")
    #expect(http.requests.count - before == 2, "a nonce out of range is ignored")
  }

  /// Fails if a login after an idle time needs a new connection, or waits on one that may be dead.
  @Test("A request uses a connection that was idle while the event stream was open") func idleLimit() async throws {
    let server = try FakeServer(stream: Self.stream(":\n\n"))
    server.on("/x", "{}")
    let http = server.makeHTTPTransport()
    let client = server.client(http)
    func limit() async throws -> Duration? {
      _ = try await client.call(.get, "/x")
      return http.requests.last?.idleLimit
    }
    #expect(try await limit() == .seconds(118))
    _ = try await client.stream("/events", headers: [:])
    #expect(try await limit() == .seconds(118))
    server.clock.advance(by: .seconds(800))
    #expect(try await limit() == .seconds(800))
    _ = try await client.call(.get, "/x", reconnecting: true)
    #expect(http.requests.last?.idleLimit == .zero)
    await client.streamEnded()
    #expect(try await limit() == .seconds(118))
    // The feed's stream ends at once.
    try await EventFeed(client: client, environment: server.environment, memory: EventFeed.Memory()).run { _ in }
    server.clock.advance(by: .seconds(800))
    #expect(try await limit() == .seconds(118))
  }

  @Test("A heartbeat renews an access token that expires soon") func earlyRenewal() async throws {
    let (server, sending) = try serverWithStream()
    let client = server.client(server.makeHTTPTransport())
    _ = try await client.call(.get, "/x")
    #expect(server.tokensGiven == 1)
    // 900 s of lifetime; a call would renew it 30 s before its end.
    server.clock.advance(by: .seconds(900 - 60))
    try await follow(server, client, stream: sending, ":\n\n", until: "a new token") { _ in server.tokensGiven > 1 }
    #expect(server.tokensGiven == 2)
    _ = try await client.call(.get, "/x")
    #expect(server.tokensGiven == 2)
  }

  @Test("A heartbeat renews no access token that is valid for long") func noEarlyRenewal() async throws {
    let server = try FakeServer()
    server.on("/x", "{}")
    let client = server.client(server.makeHTTPTransport())
    await client.renewExpiringToken()
    #expect(server.tokensGiven == 0)
    _ = try await client.call(.get, "/x")
    server.clock.advance(by: .seconds(900 - 80))
    await client.renewExpiringToken()
    #expect(server.tokensGiven == 1)
  }

  @Test("An endless line breaks the stream and nothing else") func anEndlessLineBreaksTheStreamAndNothingElse()
    async throws
  {
    let server = try FakeServer(stream: Self.stream("data: " + String(repeating: "x", count: 1 << 20)))
    let feed = feed(server, server.makeHTTPTransport())
    await #expect(throws: TokenServerError.self) { try await feed.run { _ in } }
  }

  /// Fails if a proxy, whose error page never ends, stops the token from connecting again.
  @Test("A refused stream whose body never ends is an error after the time limit of a request") func endlessError()
    async throws
  {
    let server = try FakeServer { _ in
      HTTPResponseStream(
        status: 502, headers: [:], body: AsyncThrowingStream { $0.yield(Array("Bad Gateway".utf8)) })
    }
    let feed = feed(server, server.makeHTTPTransport())
    let running = Task { try await feed.run { _ in } }
    await server.clock.untilAsleep()
    #expect(server.clock.untilNextWakes == HTTPRequest.defaultDeadline)
    server.clock.advance(by: HTTPRequest.defaultDeadline)
    await #expect(throws: TokenServerError.self) { try await running.finished() }
  }

  @Test("A silent stream is dead after two beats and polled after two deaths")
  func aSilentStreamIsDeadAfterTwoBeatsAndPolledAfterTwoDeaths() async throws {
    let server = try FakeServer()
    let http = server.makeHTTPTransport()
    let feed = feed(server, http)
    for _ in 0..<EventFeed.silentStreamsBeforePolling {
      let running = Task { try await feed.run { _ in } }
      await server.clock.untilAsleep()
      server.clock.advance(by: EventFeed.silence)
      await #expect(throws: TokenServerError.self) { try await running.finished() }
    }
    let polls = Counter()
    server.on("/events") { request throws(HTTPTransportError) in
      guard polls.increment() == 1 else { throw .unreachable("enough") }
      return HTTPResponse(
        status: 200, body: JSON.encode(EventPage(cursor: "3", events: [DeviceEvent(.request, transactionID: "t")])))
    }
    let hints = Hints()
    let polling = Task { try await feed.run { hints.add($0) } }
    try await eventually("two hints") { hints.all.count == 2 }
    await server.clock.untilAsleep()
    server.clock.advance(by: EventFeed.pollInterval)
    await #expect(throws: TokenServerError.self) { try await polling.finished() }
    #expect(hints.all == [.connected, .pendingChanged])
    #expect(http.requests.last { $0.url.contains("/events") }?.headers["Prefer"] == "wait=55")
    #expect(feed.memory.cursor == "3")
  }

  /// Fails if one page of a maintenance costs the event stream until the service restarts, or if the case of a media
  /// type counts.
  @Test("After an hour of long polls, a stream is tried again") func streamAgain() async throws {
    let streams = Counter()
    let server = try FakeServer(stream: { _ in
      let type = streams.increment() == 1 ? "text/html" : "Text/Event-Stream"
      return HTTPResponseStream(
        status: 200, headers: ["Content-Type": type], body: AsyncThrowingStream { $0.finish() })
    })
    let feed = feed(server, server.makeHTTPTransport())
    await #expect(throws: TokenServerError.self) { try await feed.run { _ in } }
    server.on("/events") { _ in HTTPResponse(status: 200, body: JSON.encode(EventPage(cursor: "3", events: []))) }
    let hints = Hints()
    let running = Task { try await feed.run { hints.add($0) } }
    await server.clock.untilAsleep()
    #expect(streams.now == 1 && hints.all == [.connected])
    server.clock.advance(by: EventFeed.pollingTime)
    try await eventually("another stream, or a pause after a poll") {
      hints.all.count == 2 || server.clock.untilNextWakes == EventFeed.pollInterval
    }
    #expect(streams.now == 2 && hints.all == [.connected, .connected])
    running.cancel()
    _ = try? await running.finished()
  }

  /// Fails if a proxy that keeps streams back delays a login by the whole time after which a stream is dead.
  @Test("After long polls, a stream must not be silent for long") func silentTrial() async throws {
    let server = try FakeServer()
    let feed = feed(server, server.makeHTTPTransport())
    feed.memory.silentStreams = EventFeed.silentStreamsBeforePolling - 1
    let running = Task { try await feed.run { _ in } }
    await server.clock.untilAsleep()
    server.clock.advance(by: EventFeed.firstSilence)
    await #expect(throws: TokenServerError.self) { try await running.finished() }
    #expect(feed.memory.silentStreams == EventFeed.silentStreamsBeforePolling)
  }

  /// Fails if a server that responds at once makes the token send, and sign, requests without a pause.
  @Test("Long polls that end at once are at most one in a second", arguments: [200, 204]) func pacedPolls(status: Int)
    async throws
  {
    let server = try FakeServer(stream: { _ in
      HTTPResponseStream(status: 200, headers: ["Content-Type": "text/html"], body: AsyncThrowingStream { $0.finish() })
    })
    let feed = feed(server, server.makeHTTPTransport())
    await #expect(throws: TokenServerError.self) { try await feed.run { _ in } }
    let polls = Counter()
    server.on("/events") { _ throws(HTTPTransportError) in
      guard polls.increment() < 100 else { throw .unreachable("too many") }
      return HTTPResponse(status: status, body: JSON.encode(EventPage(cursor: "3", events: [])))
    }
    let polling = Task { try await feed.run { _ in } }
    for second in 1...5 {
      await server.clock.untilAsleep()
      #expect(polls.now == second)
      server.clock.advance(by: EventFeed.pollInterval)
    }
    polling.cancel()
    _ = try? await polling.finished()
  }
}
