// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import Synchronization
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct EventFloodTests {
  private final class Count: Sendable {
    private let state = Mutex(0)
    var value: Int { state.withLock { $0 } }
    func increment() { state.withLock { $0 += 1 } }
  }

  @Test("A flood of events is read at a limited rate") func flood() async throws {
    let (events, sending) = AsyncThrowingStream.makeStream(of: [UInt8].self)
    let server = try FakeServer(stream: { _ in
      HTTPResponseStream(status: 200, headers: ["Content-Type": "text/event-stream"], body: events)
    })
    let (hints, most) = (Count(), EventFeed.eventsPerSecond)
    let feed = EventFeed(
      client: server.client(server.makeHTTPTransport()), environment: server.environment, memory: EventFeed.Memory())
    let running = Task { try await feed.run { _ in hints.increment() } }
    let event = #"data: {"kind":"resync"}"# + "\n\n"
    sending.yield(Array(String(repeating: event, count: 2 * most + 1).utf8))
    // The first hint is that of the connection.
    for second in 1...2 {
      try await eventually("the next event waits") { server.clock.untilNextWakes == .seconds(1) }
      #expect(hints.value == 1 + second * most)
      server.clock.advance(by: .seconds(1))
    }
    try await eventually("the last event") { hints.value == 2 + 2 * most }
    running.cancel()
    await #expect(throws: CancellationError.self) { try await running.finished() }
  }
}
