// SPDX-License-Identifier: Apache-2.0
/// Subscriptions to topics, over one connection, with at-least-once delivery. The broker queues messages while this
/// client is disconnected.
///
/// A client that knows a topic's name may be able to publish to it, depending on the broker's access list. The name
/// should be unguessable, and every message must be authenticated.
package final class Subscriber: Sendable {
  /// The maximum size of a message. Longer messages are rejected; in MQTT 5 the broker is asked not to send packets
  /// above a larger limit.
  package static let maximumMessageBytes = 16 << 10

  /// A change of the connection's state.
  package enum Report: Sendable, Equatable {
    /// Connected and subscribed to the topic. Its queued messages may have come before.
    case connected(topic: String)
    /// The broker does not permit reading this topic, but others. It is requested again after a minute.
    case mayNotRead(topic: String)
    case disconnected(BrokerError, retryIn: Duration)
    /// A message of this number of bytes was rejected and is lost.
    case refused(bytes: Int)
  }

  private let subscription: Subscription
  private let connector: any SubscriptionConnector
  private let reconnection: Reconnection
  private let report: @Sendable (Report) -> Void

  /// - Parameters:
  ///   - topics: without wildcards; at least one. Subscriptions of earlier connections to other topics end when a
  ///     message of them arrives; these messages are dropped.
  ///   - clientID: the same at every start, and unique at the broker, which stores the session under it. All brokers
  ///     accept up to 23 letters and digits (MQTT 3.1.1 §3.1.3.1).
  ///   - presence: a topic with the retained message `online` while this client is connected, otherwise `offline`. Its
  ///     name is the retained message of `TOPIC/presence` for each topic.
  ///   - connector: runs the connections.
  ///   - random: uniform in 0..<1.
  ///   - sleep: waits before the next connection.
  package init(
    at broker: Broker, topics: Set<String>, clientID: String, presence: String? = nil,
    over connector: any SubscriptionConnector = LocalConnector(),
    random: @escaping @Sendable () -> Double,
    report: @escaping @Sendable (Report) -> Void = { _ in },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    subscription = Subscription(broker: broker, topics: topics, clientID: clientID, presence: presence)
    self.connector = connector
    reconnection = Reconnection(random: random, sleep: sleep)
    self.report = report
  }

  /// Reads messages until the task is canceled. Reconnects when a connection ends.
  /// - Parameter consume: stores a message of a topic and returns whether it is durable. Only then is the message
  ///   acknowledged; otherwise the connection ends and the broker sends the message again after a pause. Messages may
  ///   therefore be delivered more than once.
  /// - Throws: `CancellationError`.
  package func run(_ consume: @Sendable ([UInt8], _ topic: String) async -> Bool) async throws -> Never {
    try await reconnection.run {
      await listen(consume)
    } report: {
      report(.disconnected($0, retryIn: $1))
    }
  }

  /// Runs one connection until it ends.
  /// - Returns: the reason; `.closed` when the task is canceled.
  package func listen(_ consume: @Sendable ([UInt8], _ topic: String) async -> Bool) async -> BrokerError {
    await connector.run(subscription, report: report, consume)
  }
}
