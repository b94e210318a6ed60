/// One topic that is read, at least once per message: what is published while we are away waits at the broker.
///
/// Whoever knows the topic's name can be let in by the broker to write into it; make it unguessable, and believe nothing
/// that comes out of it unless it proves itself.
public final class Mailbox: Sendable {
  /// Longer messages are refused; in MQTT 5 the broker is asked not to send those that are longer still.
  public static let maximumMessageBytes = 16 << 10

  /// What has become of the connection.
  public enum Report: Sendable, Equatable {
    /// Messages come; those that waited are on their way.
    case connected
    case disconnected(BrokerError, retryIn: Duration)
    /// A message of so many bytes was refused and will not come again.
    case refused(bytes: Int)
  }

  private let session: Session
  private let reconnection: Reconnection
  private let report: @Sendable (Report) -> Void

  /// - Parameters:
  ///   - topic: without wildcards.
  ///   - clientID: the same at every start, and nobody else's: the broker keeps the session under it. Up to 23 letters
  ///     and digits suit every broker (MQTT 3.1.1 §3.1.3.1).
  ///   - presence: a topic that says `online` while we listen, and `offline` when not, retained.
  ///   - random: uniform in 0..<1.
  ///   - sleep: the pause before the next connection.
  public init(
    at broker: Broker, topic: String, clientID: String, presence: String? = nil,
    report: @escaping @Sendable (Report) -> Void = { _ in },
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    session = Session(broker: broker, clientID: clientID, mailbox: topic, presence: presence)
    reconnection = Reconnection(random: random, sleep: sleep)
    self.report = report
  }

  /// Listens until the task is cancelled, connecting again whenever the connection ends.
  /// - Parameter consume: takes one message, and says whether it is durable. If not, the connection ends, and the
  ///   message comes again after a pause. Only then is it acknowledged, so a message may come twice, too.
  /// - Throws: `CancellationError`.
  public func run(_ consume: @Sendable ([UInt8]) async -> Bool) async throws -> Never {
    try await reconnection.run {
      await listen(consume)
    } report: {
      report(.disconnected($0, retryIn: $1))
    }
  }

  /// One connection, until it ends.
  /// - Returns: why it did; `.closed` when the task is cancelled.
  public func listen(_ consume: @Sendable ([UInt8]) async -> Bool) async -> BrokerError {
    let link = Link(session)
    return await withTaskCancellationHandler {
      link.start()
      while true {
        switch await link.next() {
        case .up: report(.connected)
        case .message(let message): link.settle(isTaken: await consume(message))
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
