// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MQTT
import Synchronization
import Testing

@testable import RelayProtocol

@Suite("Subscriptions over the relay", .timeLimit(.minutes(5))) struct RelayConnectorTests {
  private static let subscription = Subscription(
    broker: Broker(host: "broker.example", trust: ServerTrust()), topics: ["a", "b"], clientID: "t1", presence: nil)

  private final class Consumer: Sendable {
    let messages = Mutex<[[UInt8]]>([])
    let topics = Mutex<[String]>([])
    let reports = Mutex<[Subscriber.Report]>([])
  }

  private func run(_ peer: Peer, _ consumer: Consumer = Consumer(), takes: Bool = true) async -> BrokerError {
    await RelayConnector(through: peer.relay).run(Self.subscription) { report in
      consumer.reports.withLock { $0.append(report) }
    } _: { message, topic in
      consumer.messages.withLock { $0.append(message) }
      consumer.topics.withLock { $0.append(topic) }
      return takes
    }
  }

  @Test("Each message waits for its receipt", arguments: [true, false]) func receipts(takes: Bool) async throws {
    let (peer, consumer) = (
      Peer([
        .accepted, .mayNotRead(0), .subscribed(1), .message([1], of: 1), .oversize(99), .subscribed(0),
        .message([2], of: 0), .ended(.refused("over")),
      ]), Consumer()
    )
    #expect(await run(peer, consumer, takes: takes) == .refused("over"))
    #expect(consumer.messages.withLock { $0 } == [[1], [2]])
    #expect(
      consumer.reports.withLock { $0 } == [
        .mayNotRead(topic: "a"), .connected(topic: "b"), .refused(bytes: 99), .connected(topic: "a"),
      ])
    #expect(consumer.topics.withLock { $0 } == ["b", "a"])
    try await eventually("both receipts") { peer.receipts == [.init(isTaken: takes), .init(isTaken: takes)] }
    #expect(peer.orders == [.subscribe(RelaySubscription(Self.subscription, authorities: nil))])
  }

  /// A broker delivers what it has kept before it answers the subscription.
  @Test("Messages may come before the subscription") func messagesComeFirst() async throws {
    let (peer, consumer) = (
      Peer([.accepted, .message([1], of: 0), .oversize(99), .subscribed(0), .ended(.refused("over"))]), Consumer()
    )
    #expect(await run(peer, consumer) == .refused("over"))
    #expect(consumer.messages.withLock { $0 } == [[1]])
    try await eventually("a receipt") { peer.receipts == [.init(isTaken: true)] }
  }

  @Test(
    "What is out of place ends the subscription",
    arguments: [
      [RelayReply.accepted, .message([1], of: 2)], [.accepted, .subscribed(2)], [.accepted, .mayNotRead(2)],
      [.accepted, .up], [.accepted, .hint], [.accepted, .subscribed(0), .chunk([1])], [.accepted, .ended(.closed)],
      [.refused("no")], [.subscribed(0)],
    ])
  func outOfPlace(replies: [RelayReply]) async throws {
    let consumer = Consumer()
    guard case .unreachable = await run(Peer(replies), consumer) else {
      Issue.record("another end")
      return
    }
    #expect(consumer.messages.withLock { $0 }.isEmpty)
  }

  @Test("The end of the network process ends the subscription") func processEnds() async throws {
    guard case .unreachable = await run(Peer([.accepted, .subscribed(0)], closes: true)) else {
      Issue.record("another end")
      return
    }
  }

  @Test("A canceled subscription is closed") func canceled() async throws {
    let peer = Peer([RelayReply.accepted, .subscribed(0)])
    let running = Task { await run(peer) }
    try await eventually("the order arrives") { peer.orders.count == 1 }
    running.cancel()
    #expect(try await running.finished() == .closed)
    try await eventually("the order is closed") { peer.hangUps == 1 }
  }

  @Test("Attendance lasts until the network process ends") func attendance() async throws {
    #expect(await Peer([RelayReply.accepted, .up], closes: true).relay.attend {} == .closed)
    #expect(await Peer([RelayReply.accepted, .refused("why")]).relay.attend {} == .refused("why"))
    let hints = Mutex(0)
    let end = await Peer([.accepted, .up, .hint, .hint], closes: true).relay.listen(at: "127.0.0.1:1") {
    } onHint: {
      hints.withLock { $0 += 1 }
    }
    #expect(end == .closed)
    #expect(hints.withLock { $0 } == 2)
  }
}
