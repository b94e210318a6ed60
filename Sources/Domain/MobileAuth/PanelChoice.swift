// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The request that the user chose for the panel. The choice lasts until another one or the end of the request.
final class PanelChoice: Sendable {
  private struct State {
    var chosen: TransactionID?
    var left: TransactionID?
  }

  private let state = Mutex(State())

  /// Nil without a choice. The request may have ended since.
  var chosen: TransactionID? { state.withLock { $0.chosen } }

  /// - Parameter former: the request on the panel that the user left, which releases the panel at once; nil if the
  ///   request on the panel stays until the chosen one is opened.
  func choose(_ transaction: TransactionID, leaving former: TransactionID?) {
    state.withLock { $0 = State(chosen: transaction, left: former) }
  }

  /// Returns whether the user has left this request, once.
  func takeLeft(_ transaction: TransactionID) -> Bool {
    state.withLock { state in
      guard state.left == transaction else { return false }
      state.left = nil
      return true
    }
  }
}
