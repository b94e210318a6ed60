// SPDX-License-Identifier: Apache-2.0
import HTTP
package import MQTT

/// Runs subscriptions through the network process.
package struct RelayConnector: SubscriptionConnector {
  /// The time limit for the first subscription: the longest of the network process, and some more.
  private static let setUpLimit = LocalConnector.longestSetUp + .seconds(5)

  private let relay: Relay

  package init(through relay: Relay) { self.relay = relay }

  package func run(
    _ subscription: Subscription, report: @Sendable (Subscriber.Report) -> Void,
    _ consume: @Sendable ([UInt8], _ topic: String) async -> Bool
  ) async -> BrokerError {
    var authorities: [UInt8]?
    if let file = subscription.broker.trust.authorityFile {
      authorities = readAuthorities(file)
      guard authorities != nil else { return .unusable("\(file) is not a readable file with a certificate") }
    }
    do throws(RelayError) {
      let order = RelaySubscription(subscription, authorities: authorities)
      let socket = try await relay.open(.subscribe(order))
      return try await follow(socket, order.topics, report, consume)
    } catch {
      return error == .canceled ? .closed : .unreachable("\(error)")
    }
  }

  private func follow(
    _ socket: RelaySocket, _ topics: [String], _ report: @Sendable (Subscriber.Report) -> Void,
    _ consume: @Sendable ([UInt8], _ topic: String) async -> Bool
  ) async throws(RelayError) -> BrokerError {
    let setUpDue = ContinuousClock.now + Self.setUpLimit
    var isUp = false
    var subscribed: Set<Int> = []
    var pace = RelayPace()
    while true {
      try await pace.wait()
      switch try await socket.reply(until: isUp ? nil : setUpDue) {
      case .subscribed(let index) where topics.indices.contains(index):
        isUp = true
        // Each is a hint. A network process that was taken over must not make many of one.
        if subscribed.insert(index).inserted { report(.connected(topic: topics[index])) }
      case .mayNotRead(let index) where topics.indices.contains(index): report(.mayNotRead(topic: topics[index]))
      case .message(let message, let index) where topics.indices.contains(index):
        let receipt = RelayReceipt(isTaken: await consume(message, topics[index]))
        try await socket.send(receipt.bytes, until: .now + Relay.patience)
      case .oversize(let count): report(.refused(bytes: count))
      case .ended(let error): return error == .closed ? .unreachable("the network process is ending") : error
      case let other: throw .malformed("\(other.name) in a subscription")
      }
    }
  }
}
