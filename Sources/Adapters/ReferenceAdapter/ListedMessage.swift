// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import ReferenceProtocol
import Synchronization

/// The message of the newest request that came with the pending list, so that it need not be fetched. It is used at
/// most once, and only where it is the same as a fetched one: a PIN attempt changes the message of its request.
final class ListedMessage: Sendable {
  /// How long after the list was requested it is used. Later, counts of wrong PINs may have changed.
  static let freshness = Duration.seconds(10)

  /// Taken before a list is requested. Invalid after an answer.
  struct Ticket: Equatable { fileprivate var number = 0 }

  private struct State {
    var ticket = Ticket()
    var message: (text: String, transaction: TransactionID, askedAt: MonotonicInstant)?
  }

  private let state = Mutex(State())

  var ticket: Ticket { state.withLock { $0.ticket } }

  /// Replaces the message by that of a newer list; nil if the list has none.
  func put(_ text: String?, of transaction: TransactionID, askedAt: MonotonicInstant, _ ticket: Ticket) {
    state.withLock { state in
      guard state.ticket == ticket, let text, text.utf8.count <= PendingList.longestMessage else {
        return state.message = nil
      }
      state.message = (text, transaction, askedAt)
    }
  }

  /// Returns the message, once; nil if it has to be fetched.
  func take(of transaction: TransactionID, at now: MonotonicInstant) -> String? {
    state.withLock { state in
      guard let message = state.message, message.transaction == transaction else { return nil }
      state.message = nil
      return now - message.askedAt <= Self.freshness ? message.text : nil
    }
  }

  /// Discards the message, and those of lists that were already requested, before and after an answer is sent.
  func discard() {
    state.withLock { state in
      state.ticket.number &+= 1
      state.message = nil
    }
  }
}
