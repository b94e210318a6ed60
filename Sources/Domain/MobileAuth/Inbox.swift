// SPDX-License-Identifier: Apache-2.0
/// What the listeners write and the handler reads: pending requests, connectivity, blocked requests, the subjects of
/// the panel and the hourly limits of lines, with one change signal. Here are only the operations that affect several
/// parts.
package struct Inbox: Sendable {
  /// Raised at every change that a waiting task may have to react to.
  package let changes: ChangeSignal
  package let pending: PendingRequests
  package let connectivity: Connectivity
  let blocked = BlockedRequests()
  package let panel = PanelSubjects()
  /// The audit entries and log lines that each server's requests cause without the user.
  let lines = HourlyLimiter<TokenServerID>(limit: Inbox.hourlyLines)
  private let environment: TokenEnvironment

  /// The maximum number of audit entries per hour that one server's requests can cause without the user.
  package static let hourlyLines = 240

  package init(in environment: TokenEnvironment) {
    self.environment = environment
    changes = ChangeSignal()
    pending = PendingRequests(in: environment)
    connectivity = Connectivity(changes: changes)
  }

  /// Replaces a server's pending list, newest first, unless a newer list was applied before. At most
  /// `PendingRequests.longestList` requests are taken.
  /// - Parameter number: of `PendingRequests.nextList`, from before the list was requested; nil for the newest list.
  package func replace(
    requestsOf server: TokenServerID, with list: [PendingMobileAuthRequest], number: Int? = nil
  ) {
    let number = number ?? pending.nextList()
    guard let blockedRequests = pending.replace(requestsOf: server, with: list, number: number) else { return }
    blocked.replace(requestsOf: server, with: blockedRequests, number: number, now: environment.now)
    changes.raise()
  }

  /// Ends the request for this token, permanently.
  package func finish(_ request: PendingMobileAuthRequest) {
    pending.finish(request)
    blocked.remove(request.transaction)
    changes.raise()
  }

  /// Shows this request next, as soon as it is opened and the user does not touch the panel.
  package func choose(_ transaction: TransactionID) { choose(transaction, leaving: nil) }

  /// - Parameter former: as for `PanelChoice.choose`.
  func choose(_ transaction: TransactionID, leaving former: TransactionID?) {
    panel.choice.choose(transaction, leaving: former, at: environment.now)
    changes.raise()
  }

  /// Deletes what is known of a server that was removed. Its blocked requests stay until they expire.
  package func forget(_ server: TokenServerID) {
    pending.remove(requestsOf: server)
    connectivity.remove(server)
    changes.raise()
  }

  /// Marks a request as blocked because its account is locked. The next list decides how long.
  func block(_ transaction: TransactionID, _ info: BlockedRequestInfo) {
    if let request = pending.block(transaction, info) { blocked.insert(request) }
    changes.raise()
  }

  /// The requests that ended while they were not at the panel, and how each ended; to be finished.
  /// - Parameter shown: the request on the panel, which is not among them.
  func endedUnseen(except shown: TransactionID?) -> [(request: PendingMobileAuthRequest, how: RequestOutcome)] {
    let now = environment.now
    let ended =
      blocked.expired(at: now).map { (request: $0, how: RequestOutcome.expired) } + pending.endedAnnounced(at: now)
    return ended.filter { $0.request.transaction != shown }
  }

  /// The next deadline of a blocked or announced request.
  /// - Parameter shown: the request on the panel, whose deadline the panel's task watches.
  func nextExpiry(except shown: TransactionID? = nil) -> MonotonicInstant? {
    let now = environment.now
    return [blocked.nextDeadline(after: now), pending.nextAnnouncedDeadline(after: now, except: shown)]
      .compactMap(\.self).min()
  }

  /// Waits for a change, or until the limit if there is one.
  func change(beyond generation: Int, until limit: MonotonicInstant? = nil) async throws {
    try await changes.wait(beyond: generation, until: limit, in: environment)
  }
}
