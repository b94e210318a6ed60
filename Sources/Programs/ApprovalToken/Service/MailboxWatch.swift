// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import PingAMAdapter
import Synchronization

/// Keeps one MQTT subscription per push topic of the PingAM accounts. It is independent of the service's rounds: a new
/// or removed topic must not interrupt the panel, and a renamed account must not interrupt a connection.
final class MailboxWatch: Sendable {
  private struct State {
    var readers: [String: Task<Void, Never>] = [:]
    var hasEnded = false
  }

  private let adapters: Adapters
  private let warn: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameter warn: receives errors that keep a topic from being read.
  init(_ adapters: Adapters, warn: @escaping @Sendable (String) -> Void) {
    self.adapters = adapters
    self.warn = warn
  }

  /// Reads the current topics and starts or stops subscriptions. When this returns, a new topic is reported as not yet
  /// connected.
  func follow() {
    guard let broker = adapters.broker, let ingress = adapters.ingress else { return }
    state.withLock { state in
      guard !state.hasEnded else { return }
      let mailboxes: Set<String>
      do { mailboxes = try adapters.mailboxes() } catch {
        return warn("the mailboxes could not be read and stay unchanged: \(error)")
      }
      for (mailbox, reader) in state.readers where !mailboxes.contains(mailbox) {
        reader.cancel()
        state.readers[mailbox] = nil
        ingress.set(channelFault: nil, of: mailbox)
      }
      for mailbox in mailboxes where state.readers[mailbox] == nil {
        ingress.set(channelFault: "the broker \(broker.settings.host) has not answered yet", of: mailbox)
        state.readers[mailbox] = Task { [warn] in
          do { try await broker.bring(from: mailbox, to: ingress) } catch is CancellationError {} catch {
            warn("push messages are not received until the next start: \(error)")
            ingress.set(channelFault: "\(error)", of: mailbox)
          }
        }
      }
    }
  }

  /// Ends all subscriptions permanently; returns when all connections are closed.
  func end() async {
    let readers = state.withLock { state in
      state.hasEnded = true
      defer { state.readers = [:] }
      return Array(state.readers.values)
    }
    for reader in readers { reader.cancel() }
    for reader in readers { await reader.value }
  }
}
