// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Publishes messages at least once. For messages that are safe to repeat: an equal message on the same topic is queued
/// only once.
package final class Publisher: Sendable {
  /// The maximum number of queued messages while the broker is unavailable.
  package static let maximumWaiting = 10_000
  /// The maximum number of sent messages without acknowledgment.
  fileprivate static let maximumUnderWay = 16

  package enum Report: Sendable, Equatable {
    case connected
    case disconnected(BrokerError, retryIn: Duration)
    /// The broker does not permit publishing to this topic, or the queue is full.
    case refused(topic: String)
  }

  fileprivate struct Shared {
    /// In sending order.
    var order: [Post] = []
    var waiting: Set<Post> = []
    var underWay: [Post] = []
    var link: Link?
  }

  private let session: Session
  private let reconnection: Reconnection
  private let report: @Sendable (Report) -> Void
  private let shared = Mutex(Shared())

  /// - Parameters: as for `Subscriber`.
  package init(
    at broker: Broker, clientID: String,
    random: @escaping @Sendable () -> Double,
    report: @escaping @Sendable (Report) -> Void = { _ in },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    session = Session(broker: broker, clientID: clientID)
    reconnection = Reconnection(random: random, sleep: sleep)
    self.report = report
  }

  /// Queues a message to publish when there is a connection.
  /// - Parameter isRetained: whether the broker keeps it for later subscribers.
  package func post(_ payload: [UInt8], to topic: String, isRetained: Bool = false) {
    let post = Post(topic: topic, payload: payload, isRetained: isRetained)
    let isWaiting = shared.withLock { shared in
      guard !shared.waiting.contains(post) else { return true }
      guard shared.order.count < Self.maximumWaiting else { return false }
      shared.enqueue(post)
      shared.handOver()
      return true
    }
    if !isWaiting { report(.refused(topic: topic)) }
  }

  /// Whether the broker has acknowledged or rejected every queued message.
  package var isIdle: Bool { shared.withLock { $0.order.isEmpty && $0.underWay.isEmpty } }

  /// Publishes until the task is canceled.
  /// - Throws: `CancellationError`.
  package func run() async throws -> Never {
    try await reconnection.run {
      await connect()
    } report: {
      report(.disconnected($0, retryIn: $1))
    }
  }

  private func connect() async -> BrokerError {
    let link = Link(session)
    defer { shared.withLock { $0.requeue() } }
    return await withTaskCancellationHandler {
      link.start()
      while true {
        switch await link.next() {
        case .up:
          report(.connected)
          shared.withLock { shared in
            shared.link = link
            shared.handOver()
          }
        case .published(let post, let isAccepted):
          shared.withLock { shared in
            if let index = shared.underWay.firstIndex(of: post) { shared.underWay.remove(at: index) }
            shared.handOver()
          }
          if !isAccepted { report(.refused(topic: post.topic)) }
        case .subscribed, .mayNotRead, .message, .oversize: break
        case .ended(let failure): return failure
        }
      }
    } onCancel: {
      link.close()
    }
  }
}

extension Publisher.Shared {
  fileprivate mutating func enqueue(_ post: Post) {
    if waiting.insert(post).inserted { order.append(post) }
  }

  /// Passes queued messages to the connection, up to the limit.
  fileprivate mutating func handOver() {
    guard let link else { return }
    let next = order.prefix(max(0, Publisher.maximumUnderWay - underWay.count))
    for post in next {
      waiting.remove(post)
      underWay.append(post)
      link.publish(post)
    }
    order.removeFirst(next.count)
  }

  /// Queues unacknowledged messages again after the end of a connection.
  fileprivate mutating func requeue() {
    link = nil
    for post in underWay { enqueue(post) }
    underWay = []
  }
}
