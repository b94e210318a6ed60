import MobileAuth
import PingAMAdapter
import Synchronization

/// Empties at the broker every mailbox that AM may bring messages to. Apart from the rounds of the service: what goes on
/// at the panel must not end because a mailbox comes or goes, nor a connection because an account was renamed.
final class MailboxWatch: Sendable {
  private struct State {
    var readers: [String: Task<Void, Never>] = [:]
    var hasEnded = false
  }

  private let adapters: Adapters
  private let warn: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameter warn: told what keeps a mailbox from being emptied at all.
  init(_ adapters: Adapters, warn: @escaping @Sendable (String) -> Void) {
    self.adapters = adapters
    self.warn = warn
  }

  /// Looks which mailboxes there are now. Before this returns, nobody thinks any more that messages come to a new one.
  func follow() {
    guard let broker = adapters.broker, let ingress = adapters.ingress else { return }
    state.withLock { state in
      guard !state.hasEnded else { return }
      let mailboxes: Set<String>
      do { mailboxes = try adapters.mailboxes() } catch { return warn("the mailboxes stay as they were: \(error)") }
      for (mailbox, reader) in state.readers where !mailboxes.contains(mailbox) {
        reader.cancel()
        state.readers[mailbox] = nil
        ingress.set(channelFault: nil, of: mailbox)
      }
      for mailbox in mailboxes where state.readers[mailbox] == nil {
        ingress.set(channelFault: "the broker \(broker.settings.host) has not answered yet", of: mailbox)
        state.readers[mailbox] = Task { [warn] in
          do { try await broker.bring(from: mailbox, to: ingress) } catch is CancellationError {} catch {
            warn("messages are not fetched until the next start: \(error)")
            ingress.set(channelFault: "\(error)", of: mailbox)
          }
        }
      }
    }
  }

  /// Returns when all connections have ended, for good.
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
