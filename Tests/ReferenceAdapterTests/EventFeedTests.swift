// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import MobileAuth
import ReferenceProtocol
import Synchronization
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct EventFeedTests {
  private func feed(_ server: FakeServer, _ courier: RecordingCourier) -> EventFeed {
    EventFeed(client: server.client(courier), timekeeper: server.timekeeper, memory: EventFeed.Memory())
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

  @Test func eventsBecomeHintsAndTheCursorIsRemembered() async throws {
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
    let courier = server.makeCourier()
    let feed = feed(server, courier)
    let hints = Hints()
    try await feed.run { hints.add($0) }
    #expect(hints.all == [.connected, .pendingChanged, .revoked])
    #expect(feed.memory.cursor == "10")
    try await feed.run { _ in }
    #expect(courier.requests.last { $0.url.hasSuffix("/events") }?.headers["Last-Event-ID"] == "10")
  }

  @Test("A delivery is reported without delaying the next event") func reportsAreBesideTheReader()
    async throws
  {
    let (events, sending) = AsyncThrowingStream.makeStream(of: [UInt8].self)
    let server = try FakeServer(stream: { _ in
      HTTPResponseStream(status: 200, headers: ["Content-Type": "text/event-stream"], body: events)
    })
    let courier = HangingReports(courier: server.makeCourier())
    let client = DeviceClient(
      issuer: FakeServer.url, clientID: FakeServer.clientID, key: server.deviceKey, courier: courier,
      timekeeper: server.timekeeper)
    let feed = EventFeed(client: client, timekeeper: server.timekeeper, memory: EventFeed.Memory())
    let hints = Hints()
    let running = Task { try await feed.run { hints.add($0) } }
    for id in 1...2 {
      let data = #"{"kind":"request","transaction_id":"t","profile_id":"p"}"#
      sending.yield(Array("id: \(id)\ndata: \(data)\n\n".utf8))
    }
    let start = ContinuousClock.now
    while hints.all.count < 3 || courier.reports.all.isEmpty, ContinuousClock.now - start < .seconds(180) {
      try await Task.sleep(for: .milliseconds(1))
    }
    #expect(hints.all == [.connected, .pendingChanged, .pendingChanged])
    #expect(courier.reports.all.count == 1)
    running.cancel()
    _ = try? await running.value
  }

  /// A server that does not accept delivery reports.
  private struct HangingReports: Courier {
    let courier: RecordingCourier
    let reports = Hints()

    func send(_ request: HTTPRequest) async throws(CourierError) -> HTTPResponse {
      guard request.url.hasSuffix("/events/acks") else { return try await courier.send(request) }
      reports.add(.pendingChanged)
      try? await Task.sleep(for: .seconds(3600))
      throw .unreachable("canceled")
    }

    func stream(_ request: HTTPRequest) async throws(CourierError) -> HTTPResponseStream {
      try await courier.stream(request)
    }
  }

  @Test func anEndlessLineBreaksTheStreamAndNothingElse() async throws {
    let server = try FakeServer(stream: Self.stream("data: " + String(repeating: "x", count: 1 << 20)))
    let feed = feed(server, server.makeCourier())
    await #expect(throws: TokenServerFault.self) { try await feed.run { _ in } }
  }

  @Test func aSilentStreamIsDeadAfterTwoBeatsAndPolledAfterTwoDeaths() async throws {
    let server = try FakeServer()
    let courier = server.makeCourier()
    let feed = feed(server, courier)
    for _ in 0..<EventFeed.silentStreamsBeforePolling {
      let running = Task { try await feed.run { _ in } }
      await server.timekeeper.untilAsleep()
      server.timekeeper.advance(by: EventFeed.silence)
      await #expect(throws: TokenServerFault.self) { try await running.value }
    }
    let polls = Counter()
    server.on("/events") { request throws(CourierError) in
      guard polls.increment() == 1 else { throw .unreachable("enough") }
      return HTTPResponse(
        status: 200, body: JSON.encode(EventPage(cursor: "3", events: [DeviceEvent(.request, transactionID: "t")])))
    }
    let hints = Hints()
    await #expect(throws: TokenServerFault.self) { try await feed.run { hints.add($0) } }
    #expect(hints.all == [.connected, .pendingChanged])
    #expect(courier.requests.last { $0.url.contains("/events") }?.headers["Prefer"] == "wait=55")
    #expect(feed.memory.cursor == "3")
  }
}
