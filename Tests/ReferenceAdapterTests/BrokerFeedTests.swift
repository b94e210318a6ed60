// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import ReferenceProtocol
import ServerBackends
import Synchronization
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct BrokerFeedTests {
  /// A broker whose one connection is up when the test says so.
  private struct SlowBroker: HintBroker {
    let replacesEventStream = true
    let connections: AsyncStream<Void>

    func read(
      _ mailbox: String, of device: String, isUp: @escaping @Sendable () -> Void,
      take: @escaping @Sendable ([UInt8]) -> Void
    ) async -> String {
      for await _ in connections { isUp() }
      return "canceled"
    }
  }

  private final class Hints: Sendable {
    private let state = Mutex<[Hint]>([])
    var all: [Hint] { state.withLock { $0 } }
    func add(_ hint: Hint) { state.withLock { $0.append(hint) } }
  }

  /// Fails if requests are shown late while the broker does not respond: nothing else reads the list then.
  @Test("The list is read once a minute while an attempt to reach the broker lasts") func slowAttempt() async throws {
    let server = try FakeServer()
    let response = PushEnrollmentResponse(pushToken: "p", mailbox: "mailbox/1")
    server.on("/profiles/PROFIL/push", String(decoding: JSON.encode(response), as: UTF8.self))
    let (connections, connection) = AsyncStream.makeStream(of: Void.self)
    let feed = BrokerEventFeed(
      client: server.client(server.makeHTTPTransport()), broker: SlowBroker(connections: connections),
      environment: server.environment)
    let hints = Hints()
    let running = Task { try await feed.run(["PROFIL"]) { hints.add($0) } }
    defer { running.cancel() }
    for count in 1...3 {
      try await eventually("reading \(count)") { hints.all.count == count && server.clock.sleeping == 1 }
      server.clock.advance(by: .seconds(60))
    }
    try await eventually("the next pause") { hints.all.count == 4 && server.clock.sleeping == 1 }
    #expect(hints.all.allSatisfy { $0 == .pendingChanged })
    connection.yield()
    try await eventually("the connection") { hints.all.count == 5 && server.clock.sleeping == 0 }
    #expect(hints.all.last == .connected)
  }
}
