// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Threads

/// The verified request on the panel, for commands and displays. In memory only, and only while the request is there.
package final class ShownRequest: Sendable {
  /// Why a request left the panel.
  package enum Ending: String, Sendable {
    /// The user answered. After a wrong PIN or choice, or if the answer could not be made, the request returns.
    case answered
    case expired
    /// The server no longer lists the request.
    case closed
    /// Another request or a panel task took the panel; the request may return.
    case replaced
    /// The request could not be answered; the reason is in the log.
    case refused
    /// The service reloads its accounts or ends; the request may return.
    case interrupted
  }

  package enum Change: Sendable, Equatable {
    /// No request is on the panel. Only as the first change.
    case nothing
    case shown(MobileAuthRequest)
    case ended(TransactionID, Ending)
  }

  /// The number of changes that are kept for a slow watcher. The newest are kept: they say what is on the panel.
  private static let longestBacklog = 64

  private struct State {
    var request: MobileAuthRequest?
    var watchers = StreamFollowers<Change>()
  }

  private let state = Mutex(State())

  /// The request on the panel; nil for none.
  package var request: MobileAuthRequest? { state.withLock { $0.request } }

  /// Streams what is on the panel now, and then each change.
  package func changes() -> AsyncStream<Change> {
    AsyncStream(bufferingPolicy: .bufferingNewest(Self.longestBacklog)) { continuation in
      state.withLock { state in
        state.watchers.add(continuation, first: state.request.map(Change.shown) ?? .nothing)
      }
    }
  }

  func begin(_ request: MobileAuthRequest) {
    state.withLock { state in
      state.request = request
      state.watchers.send(.shown(request))
    }
  }

  /// Does nothing while no request is on the panel.
  func end(_ ending: Ending) {
    state.withLock { state in
      guard let request = state.request else { return }
      state.request = nil
      state.watchers.send(.ended(request.pending.transaction, ending))
    }
  }
}
