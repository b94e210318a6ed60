// SPDX-License-Identifier: Apache-2.0
import MQTT
import MobileAuth
import ServerBackends
import Synchronization

/// Receives the messages of all push topics of the accounts over one connection to the broker. It is independent of the
/// service's rounds: a new or removed topic must not interrupt the panel, and a renamed account must not interrupt the
/// connection.
///
/// If a topic is new or removed, the next connection replaces this one. The broker keeps the messages meanwhile.
final class MailboxWatch: Sendable {
  private struct State {
    var receivers: [String: any PushReceiver] = [:]
    /// Ends when it is canceled; without mailboxes, at once.
    var reader: Task<Void, Never>?
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

  /// Reads the current topics and changes the subscriptions. When this returns, a new topic is reported as not yet
  /// connected.
  func follow() {
    guard let broker else { return }
    state.withLock { state in
      guard !state.hasEnded else { return }
      let mailboxes: [String: any PushReceiver]
      do { mailboxes = try readMailboxes() } catch {
        return warn("the mailboxes could not be read and stay unchanged: \(error)")
      }
      let former = state.receivers
      state.receivers = mailboxes
      guard Set(mailboxes.keys) != Set(former.keys) else { return }
      for (mailbox, receiver) in former where mailboxes[mailbox] == nil {
        receiver.set(channelFault: nil, of: mailbox)
      }
      for (mailbox, receiver) in mailboxes where former[mailbox] == nil {
        receiver.set(channelFault: "the broker \(broker.settings.host) has not answered yet", of: mailbox)
      }
      state.reader?.cancel()
      state.reader = read(Set(mailboxes.keys), from: broker, after: state.reader)
    }
  }

  private func readMailboxes() throws(StateStoreError) -> [String: any PushReceiver] {
    var mailboxes: [String: any PushReceiver] = [:]
    for receiver in backends.receivers { for mailbox in try receiver.mailboxes() { mailboxes[mailbox] = receiver } }
    return mailboxes
  }

  /// - Parameter former: the canceled reader before this one. Two connections with one client id would end each other.
  private func read(
    _ mailboxes: Set<String>, from broker: BrokerSubscriber, after former: Task<Void, Never>?
  ) -> Task<Void, Never> {
    let note: @Sendable (MQTT.Subscriber.Report) -> Void = { [weak self] in self?.note($0, of: mailboxes) }
    let take: @Sendable ([UInt8], String) async -> Bool = { [weak self] in
      self?.isFinal($0, of: $1) ?? false
    }
    return Task {
      await former?.value
      guard !mailboxes.isEmpty else { return }
      // It ends only when it is canceled.
      _ = try? await broker.deliver(from: mailboxes, report: note, take: take)
    }
  }

  private func receiver(of mailbox: String) -> (any PushReceiver)? { state.withLock { $0.receivers[mailbox] } }

  /// Drops messages of a mailbox that was removed meanwhile.
  private func isFinal(_ message: [UInt8], of mailbox: String) -> Bool {
    receiver(of: mailbox)?.isFinal(message) ?? true
  }

  private func note(_ report: MQTT.Subscriber.Report, of mailboxes: Set<String>) {
    switch report {
    case .connected(let mailbox): receiver(of: mailbox)?.set(channelFault: nil, of: mailbox)
    case .mayNotRead(let mailbox):
      receiver(of: mailbox)?.set(channelFault: "\(BrokerError.mayNotRead(topic: mailbox))", of: mailbox)
    case .disconnected(let failure, _):
      for mailbox in mailboxes { receiver(of: mailbox)?.set(channelFault: "\(failure)", of: mailbox) }
    case .refused: break
    }
  }

  /// Ends the connection permanently; returns when it is closed.
  func end() async {
    let reader = state.withLock { state in
      state.hasEnded = true
      return state.reader.take()
    }
    reader?.cancel()
    await reader?.value
  }
}
