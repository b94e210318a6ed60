// SPDX-License-Identifier: Apache-2.0

/// What a subscriber wants of a broker.
package struct Subscription: Sendable {
  package var broker: Broker
  /// Without wildcards.
  package var topics: Set<String>
  package var clientID: String
  package var presence: String?

  /// - Parameters: as for `Subscriber`.
  package init(broker: Broker, topics: Set<String>, clientID: String, presence: String?) {
    self.broker = broker
    self.topics = topics
    self.clientID = clientID
    self.presence = presence
  }
}

/// Runs connections to brokers, in this process or in another one.
package protocol SubscriptionConnector: Sendable {
  /// Runs one connection until it ends.
  /// - Parameters:
  ///   - report: called with all but `.disconnected`.
  ///   - consume: as for `Subscriber.run`.
  /// - Returns: the reason; `.closed` when the task is canceled.
  func run(
    _ subscription: Subscription, report: @Sendable (Subscriber.Report) -> Void,
    _ consume: @Sendable ([UInt8], _ topic: String) async -> Bool
  ) async -> BrokerError
}

/// Runs connections in this process.
package struct LocalConnector: SubscriptionConnector {
  package static let setUpLimit = Duration.seconds(20)
  /// The time limit of the longest attempt, from the name resolution to the first subscription.
  package static let longestSetUp = setUpLimit * (Attempts.longestPatience + 1)

  private let keepalive: UInt16
  private let setUpLimit: Duration

  /// - Parameters: as for `Session`.
  package init(keepalive: UInt16 = 30, setUpLimit: Duration = Self.setUpLimit) {
    self.keepalive = keepalive
    self.setUpLimit = setUpLimit
  }

  package func run(
    _ subscription: Subscription, report: @Sendable (Subscriber.Report) -> Void,
    _ consume: @Sendable ([UInt8], _ topic: String) async -> Bool
  ) async -> BrokerError {
    let link = Link(
      Session(
        broker: subscription.broker, clientID: subscription.clientID, topics: subscription.topics,
        presence: subscription.presence, keepalive: keepalive, setUpLimit: setUpLimit))
    return await withTaskCancellationHandler {
      link.start()
      while true {
        switch await link.next() {
        case .subscribed(let topic): report(.connected(topic: topic))
        case .mayNotRead(let topic): report(.mayNotRead(topic: topic))
        case .message(let message, let topic): link.acknowledge(isTaken: await consume(message, topic))
        case .oversize(let bytes): report(.refused(bytes: bytes))
        case .up, .published: break
        case .ended(let failure): return failure
        }
      }
    } onCancel: {
      link.close()
    }
  }
}
