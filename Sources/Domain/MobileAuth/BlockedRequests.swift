// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Requests of locked accounts, which are not shown to the user. Kept while a server is disconnected, until the server
/// lists them otherwise or they expire.
final class BlockedRequests: Sendable {
  private struct State {
    var requests: [TransactionID: PendingMobileAuthRequest] = [:]
    /// Oldest first.
    var order: [TransactionID] = []
    /// Requests that are already in the audit log.
    var reported: Set<TransactionID> = []
    var lists = ListOrder<TokenServerID>()

    mutating func insert(_ request: PendingMobileAuthRequest) {
      if requests.updateValue(request, forKey: request.transaction) == nil { order.append(request.transaction) }
    }

    mutating func removeAll(where isGone: (PendingMobileAuthRequest) -> Bool) {
      requests = requests.filter { !isGone($0.value) }
      order.removeAll { requests[$0] == nil }
      reported.formIntersection(requests.keys)
    }
  }

  private let state = Mutex(State())

  /// Replaces a server's blocked requests, unless those of a newer list are there. Expired requests stay: their expiry
  /// still has to be logged.
  /// - Parameters:
  ///   - blocked: oldest first.
  ///   - number: of the list.
  func replace(
    requestsOf server: TokenServerID, with blocked: [PendingMobileAuthRequest], number: Int, now: MonotonicInstant
  ) {
    let transactions = Set(blocked.map(\.transaction))
    state.withLock { state in
      guard state.lists.apply(number, of: server) else { return }
      state.removeAll { $0.server == server && $0.deadline > now && !transactions.contains($0.transaction) }
      for request in blocked { state.insert(request) }
    }
  }

  func insert(_ request: PendingMobileAuthRequest) { state.withLock { $0.insert(request) } }

  func remove(_ transaction: TransactionID) { state.withLock { $0.removeAll { $0.transaction == transaction } } }

  /// Requests that are not in the audit log yet, oldest first.
  func unreported(of server: TokenServerID) -> [PendingMobileAuthRequest] {
    state.withLock { state in
      state.order.compactMap { state.requests[$0] }
        .filter { $0.server == server && !state.reported.contains($0.transaction) }
    }
  }

  func markReported(_ transaction: TransactionID) { state.withLock { _ = $0.reported.insert(transaction) } }

  func expired(at now: MonotonicInstant) -> [PendingMobileAuthRequest] {
    state.withLock { $0.requests.values.filter { $0.deadline <= now } }
  }

  /// The first deadline after `now`.
  func nextDeadline(after now: MonotonicInstant) -> MonotonicInstant? {
    state.withLock { $0.requests.values.map(\.deadline).filter { $0 > now }.min() }
  }
}
