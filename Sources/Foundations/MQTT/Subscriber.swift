// SPDX-License-Identifier: Apache-2.0
/// A subscription to one topic with at-least-once delivery. The broker queues messages while this client is
/// disconnected.
///
/// A client that knows the topic's name may be able to publish to it, depending on the broker's access list. The name
/// should be unguessable, and every message must be authenticated.
package final class Subscriber: Sendable {
  /// The maximum size of a message. Longer messages are rejected; in MQTT 5 the broker is asked not to send packets
  /// above a larger limit.
  package static let maximumMessageBytes = 16 << 10

  /// A change of the connection's state.
  package enum Report: Sendable, Equatable {
    /// Connected and subscribed. Queued messages follow.
    case connected
    case disconnected(BrokerError, retryIn: Duration)
    /// A message of this number of bytes was rejected and is lost.
    case refused(bytes: Int)
  }

  private let session: Session
  private let reconnection: Reconnection
  private let report: @Sendable (Report) -> Void

  /// - Parameters:
  ///   - topic: without wildcards.
  ///   - clientID: the same at every start, and unique at the broker, which stores the session under it. All brokers
  ///     accept up to 23 letters and digits (MQTT 3.1.1 §3.1.3.1).
  ///   - presence: a topic with the retained message `online` while this client is connected, otherwise `offline`.
  ///   - random: uniform in 0..<1.
  ///   - sleep: waits before the next connection.
  package init(
    at broker: Broker, topic: String, clientID: String, presence: String? = nil,
    random: @escaping @Sendable () -> Double,
    report: @escaping @Sendable (Report) -> Void = { _ in },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    session = Session(broker: broker, clientID: clientID, topic: topic, presence: presence)
    reconnection = Reconnection(random: random, sleep: sleep)
    self.report = report
  }

  /// Reads messages until the task is canceled. Reconnects when a connection ends.
  /// - Parameter consume: stores a message and returns whether it is durable. Only then is the message acknowledged;
  ///   otherwise the connection ends and the broker sends the message again after a pause. Messages may therefore be
  ///   delivered more than once.
  /// - Throws: `CancellationError`.
  package func run(_ consume: @Sendable ([UInt8]) async -> Bool) async throws -> Never {
    try await reconnection.run {
      await listen(consume)
    } report: {
      report(.disconnected($0, retryIn: $1))
    }
  }

  /// Runs one connection until it ends.
  /// - Returns: the reason; `.closed` when the task is canceled.
  package func listen(_ consume: @Sendable ([UInt8]) async -> Bool) async -> BrokerError {
    let link = Link(session)
    return await withTaskCancellationHandler {
      link.start()
      while true {
        switch await link.next() {
        case .up: report(.connected)
        case .message(let message): link.acknowledge(isTaken: await consume(message))
        case .oversize(let bytes): report(.refused(bytes: bytes))
        case .published: break
        case .ended(let failure): return failure
        }
      }
    } onCancel: {
      link.close()
    }
  }
}
