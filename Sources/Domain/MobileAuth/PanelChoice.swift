// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The request that the user chose for the panel. The choice lasts for `PanelTurns.length`, and at most until another
/// one or the end of the request.
final class PanelChoice: Sendable {
  private struct State {
    var chosen: TransactionID?
    var left: TransactionID?
    var end: MonotonicInstant?
  }

  private let state = Mutex(State())

  /// Nil without a choice. The request may have ended since.
  func chosen(at now: MonotonicInstant) -> TransactionID? {
    state.withLock { state in state.end.map { now < $0 } == true ? state.chosen : nil }
  }

  /// When the choice ends; nil if there is none or it has ended.
  func end(at now: MonotonicInstant) -> MonotonicInstant? {
    state.withLock { state in state.end.flatMap { now < $0 ? $0 : nil } }
  }

  /// - Parameter former: the request on the panel that the user left, which releases the panel at once; nil if the
  ///   request on the panel stays until the chosen one is opened.
  func choose(_ transaction: TransactionID, leaving former: TransactionID?, at now: MonotonicInstant) {
    state.withLock { $0 = State(chosen: transaction, left: former, end: now + PanelTurns.length) }
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
