// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import ServerBackends
import Synchronization

/// Keeps one MQTT subscription per push topic of the accounts. It is independent of the service's rounds: a new or
/// removed topic must not interrupt the panel, and a renamed account must not interrupt a connection.
final class MailboxWatch: Sendable {
  private struct Subscription {
    let receiver: any PushReceiver
    let reader: Task<Void, Never>
  }

  private struct State {
    var subscriptions: [String: Subscription] = [:]
    var hasEnded = false
  }

  private let backends: Backends
  private let broker: BrokerSubscriber?
  private let warn: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameters:
  ///   - broker: nil without a configured broker: no topic is read then.
  ///   - warn: receives errors that keep a topic from being read.
  init(_ backends: Backends, broker: BrokerSubscriber?, warn: @escaping @Sendable (String) -> Void) {
    self.backends = backends
    self.broker = broker
    self.warn = warn
  }

  /// Reads the current topics and starts or stops subscriptions. When this returns, a new topic is reported as not yet
  /// connected.
  func follow() {
    guard let broker else { return }
    state.withLock { state in
      guard !state.hasEnded else { return }
      let mailboxes: [String: any PushReceiver]
      do { mailboxes = try readMailboxes() } catch {
        return warn("the mailboxes could not be read and stay unchanged: \(error)")
      }
      for (mailbox, subscription) in state.subscriptions where mailboxes[mailbox] == nil {
        subscription.reader.cancel()
        state.subscriptions[mailbox] = nil
        subscription.receiver.set(channelFault: nil, of: mailbox)
      }
      for (mailbox, receiver) in mailboxes where state.subscriptions[mailbox] == nil {
        receiver.set(channelFault: "the broker \(broker.settings.host) has not answered yet", of: mailbox)
        state.subscriptions[mailbox] = Subscription(
          receiver: receiver, reader: read(mailbox, for: receiver, from: broker))
      }
    }
  }

  private func readMailboxes() throws(StateStoreError) -> [String: any PushReceiver] {
    var mailboxes: [String: any PushReceiver] = [:]
    for receiver in backends.receivers { for mailbox in try receiver.mailboxes() { mailboxes[mailbox] = receiver } }
    return mailboxes
  }

  private func read(
    _ mailbox: String, for receiver: any PushReceiver, from broker: BrokerSubscriber
  ) -> Task<Void, Never> {
    Task { [warn] in
      do { try await broker.deliver(from: mailbox, to: receiver) } catch is CancellationError {} catch {
        warn("push messages are not received until the next start: \(error)")
        receiver.set(channelFault: "\(error)", of: mailbox)
      }
    }
  }

  /// Ends all subscriptions permanently; returns when all connections are closed.
  func end() async {
    let readers = state.withLock { state in
      state.hasEnded = true
      defer { state.subscriptions = [:] }
      return state.subscriptions.values.map(\.reader)
    }
    for reader in readers { reader.cancel() }
    for reader in readers { await reader.value }
  }
}
