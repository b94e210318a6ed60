// SPDX-License-Identifier: Apache-2.0
/// Requests with an "announced" audit entry that are neither answered nor finished.
struct AnnouncedRequests {
  /// In this time before its deadline, a request that leaves the list has expired by the server's clock.
  private static let expiryTolerance = Duration.seconds(2)

  private var all: [TransactionID: PendingMobileAuthRequest] = [:]
  /// Requests that left the list before their deadline.
  private var delisted: Set<TransactionID> = []

  mutating func insert(_ request: PendingMobileAuthRequest) { all[request.transaction] = request }

  mutating func remove(_ transaction: TransactionID) {
    all[transaction] = nil
    delisted.remove(transaction)
  }

  mutating func remove(requestsOf server: TokenServerID) {
    all = all.filter { $0.value.server != server }
    delisted.formIntersection(all.keys)
  }

  mutating func update(
    of server: TokenServerID, listed: [TransactionID: PendingMobileAuthRequest], now: MonotonicInstant
  ) {
    for (transaction, request) in all where request.server == server {
      if let current = listed[transaction] {
        all[transaction] = current
        delisted.remove(transaction)
      } else if request.deadline > now + Self.expiryTolerance {
        delisted.insert(transaction)
      }
    }
  }

  /// The requests that expired or left the list, and how each ended.
  func ended(at now: MonotonicInstant) -> [(request: PendingMobileAuthRequest, how: RequestOutcome)] {
    all.values.compactMap { request in
      if request.deadline <= now { return (request, .expired) }
      return delisted.contains(request.transaction) ? (request, request.unexplainedEnding(at: now)) : nil
    }
  }

  func deadlines(except shown: TransactionID?) -> some Sequence<MonotonicInstant> {
    all.values.filter { $0.transaction != shown }.map(\.deadline)
  }
}
