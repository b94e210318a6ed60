// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The state of the connection to one token server.
public enum Reachability: String, Sendable {
  case connected
  case disconnected
  /// The server reported an error that only the operator can resolve.
  case stopped
}

/// The pending requests of all token servers. Filled only from the servers' pending lists: each request is stored once,
/// even if it is announced repeatedly, until it expires, leaves the list or is finished.
public final class Inbox: Sendable {
  /// The maximum number of requests read from one server's list; the rest is ignored. No user can answer a longer list.
  public static let longestList = 200
  /// Per server. More than a list can contain, so that no list can displace the memory of ended requests.
  static let rememberedOutcomes = 5 * longestList
  /// In this time before its deadline, a request that leaves the list has expired by the server's clock.
  private static let expiryTolerance = Duration.seconds(2)

  /// State of a listed request that is kept while the accounts are reloaded.
  private struct Known {
    let server: TokenServerID
    /// Increases with every request that this token sees for the first time. The order does not depend on the server's
    /// timestamps.
    let arrival: Int
    var wasAnnounced = false
    var wasPreempted = false
  }

  /// Requests that ended on this token; a list requested before the end must not restore them. Oldest first, bounded.
  private struct RecentOutcomes {
    var order: [TransactionID] = []
    var all: Set<TransactionID> = []

    mutating func remember(_ transaction: TransactionID) {
      guard all.insert(transaction).inserted else { return }
      order.append(transaction)
      if order.count > Inbox.rememberedOutcomes { all.remove(order.removeFirst()) }
    }
  }

  private struct State {
    var requests: [TransactionID: PendingMobileAuthRequest] = [:]
    var known: [TransactionID: Known] = [:]
    var lastArrival = 0
    var finished: [TokenServerID: RecentOutcomes] = [:]
    var connections: [TokenServerID: Reachability] = [:]
    /// Requests of locked accounts, not shown to the user. Kept while a server is disconnected, until the server lists
    /// them otherwise or they expire.
    var blockedBy: [TransactionID: PendingMobileAuthRequest] = [:]
    /// Blocked requests already written to the audit log.
    var reported: Set<TransactionID> = []
    /// Requests with an "announced" audit entry that are neither answered nor finished.
    var announced: [TransactionID: PendingMobileAuthRequest] = [:]
    /// Announced requests that left the list before their deadline.
    var delisted: Set<TransactionID> = []
    var expiredUnannounced = 0
    var shown: TransactionID?

    mutating func updateBlocked(of server: TokenServerID, now: MonotonicInstant) {
      // Keep expired requests: their expiry still has to be logged.
      blockedBy = blockedBy.filter { $0.value.server != server || $0.value.deadline <= now }
      for request in requests.values where request.server == server && request.blockedBy != nil {
        blockedBy[request.transaction] = request
      }
      reported.formIntersection(blockedBy.keys)
    }

    mutating func updateAnnounced(of server: TokenServerID, now: MonotonicInstant) {
      for (transaction, request) in announced where request.server == server {
        if let listed = requests[transaction] {
          announced[transaction] = listed
          delisted.remove(transaction)
        } else if request.deadline > now + Inbox.expiryTolerance {
          delisted.insert(transaction)
        }
      }
    }

    /// Numbers new requests from the end of the list, because lists are newest first.
    mutating func updateKnown(of server: TokenServerID, _ list: some BidirectionalCollection<PendingMobileAuthRequest>)
    {
      let former = known
      known = former.filter { $0.value.server != server }
      for request in list.reversed() where requests[request.transaction]?.server == server {
        let transaction = request.transaction
        if former[transaction] == nil { lastArrival += 1 }
        known[transaction] = former[transaction] ?? Known(server: server, arrival: lastArrival)
      }
    }

    mutating func dropExpired(now: MonotonicInstant) {
      for (transaction, request) in requests where request.deadline <= now {
        requests[transaction] = nil
        if known[transaction]?.wasAnnounced != true, request.blockedBy == nil { expiredUnannounced += 1 }
      }
    }

    mutating func forgetAnnounced(_ transaction: TransactionID) {
      announced[transaction] = nil
      delisted.remove(transaction)
    }

    func isNewer(_ one: PendingMobileAuthRequest, than other: PendingMobileAuthRequest) -> Bool {
      (known[one.transaction]?.arrival ?? 0, other.transaction.text)
        > (known[other.transaction]?.arrival ?? 0, one.transaction.text)
    }
  }

  let lastPrompt = LastPrompt()
  private let state = Mutex(State())
  private let signal = Signal()
  private let clock: any TokenClock

  public init(clock: any TokenClock) { self.clock = clock }

  /// Replaces a server's pending list, newest first. At most `longestList` requests are taken. Deadlines can only
  /// become earlier.
  public func replace(requestsOf server: TokenServerID, with list: [PendingMobileAuthRequest]) {
    let now = clock.now
    let list = list.prefix(Self.longestList)
    state.withLock { state in
      state.dropExpired(now: now)
      let former = state.requests
      let finished = state.finished[server]?.all ?? []
      state.requests = former.filter { $0.value.server != server }
      for var request in list where request.server == server && !finished.contains(request.transaction) {
        if let known = former[request.transaction] {
          // A transaction belongs to the server that listed it first.
          guard known.server == server else { continue }
          request.deadline = min(request.deadline, known.deadline)
        }
        state.requests[request.transaction] = request
      }
      state.updateKnown(of: server, list)
      state.updateBlocked(of: server, now: now)
      state.updateAnnounced(of: server, now: now)
    }
    signal.raise()
  }

  /// Ends the request for this token, permanently.
  public func finish(_ request: PendingMobileAuthRequest) {
    let transaction = request.transaction
    state.withLock { state in
      state.requests[transaction] = nil
      state.blockedBy[transaction] = nil
      state.reported.remove(transaction)
      state.forgetAnnounced(transaction)
      state.finished[request.server, default: RecentOutcomes()].remember(transaction)
    }
    signal.raise()
  }

  /// Deletes all requests of a server that was removed.
  public func forget(_ server: TokenServerID) {
    state.withLock { state in
      state.requests = state.requests.filter { $0.value.server != server }
      state.announced = state.announced.filter { $0.value.server != server }
      state.delisted.formIntersection(state.announced.keys)
      state.connections[server] = nil
    }
    signal.raise()
  }

  public func set(_ connection: Reachability, to server: TokenServerID) {
    state.withLock { $0.connections[server] = connection }
    signal.raise()
  }

  /// Pending requests that have not expired, newest first: ordered by when this token first saw them, and within one
  /// list by the list's order.
  public var requests: [PendingMobileAuthRequest] {
    let now = clock.now
    return state.withLock { state in
      state.dropExpired(now: now)
      return state.requests.values.sorted { state.isNewer($0, than: $1) }
    }
  }

  public func contains(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.requests[transaction] != nil }
  }

  // MARK: The request at the panel

  /// The request that the panel shows now; nil for none.
  public internal(set) var shown: TransactionID? {
    get { state.withLock { $0.shown } }
    set { state.withLock { $0.shown = newValue } }
  }

  /// Records that the audit chain has an "announced" entry, which requires an entry of the request's end.
  func noteAnnounced(_ request: PendingMobileAuthRequest) {
    state.withLock { state in
      guard state.requests[request.transaction] != nil else { return }
      state.announced[request.transaction] = request
      state.known[request.transaction]?.wasAnnounced = true
    }
  }

  /// Records that an answer is in the journal: the end of the answer is then the request's end.
  func noteAnswered(_ transaction: TransactionID) { state.withLock { $0.forgetAnnounced(transaction) } }

  /// Records that a newer request has replaced this one at the panel, which happens at most once.
  func notePreempted(_ transaction: TransactionID) {
    state.withLock { $0.known[transaction]?.wasPreempted = true }
  }

  func wasPreempted(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.known[transaction]?.wasPreempted ?? false }
  }

  /// Returns the number of requests that expired without an announcement since the last call.
  func takeExpiredUnannounced() -> Int {
    state.withLock { state in
      defer { state.expiredUnannounced = 0 }
      return state.expiredUnannounced
    }
  }

  // MARK: Requests of locked accounts

  /// Marks a request as blocked because its account is locked. The next list decides how long.
  func block(_ transaction: TransactionID, _ withholding: BlockedRequestInfo) {
    state.withLock { state in
      state.requests[transaction]?.blockedBy = withholding
      state.blockedBy[transaction] = state.requests[transaction]
      state.forgetAnnounced(transaction)
    }
    signal.raise()
  }

  /// Blocked requests that are not in the log yet, oldest first.
  func unreportedBlockedRequests(of server: TokenServerID) -> [PendingMobileAuthRequest] {
    state.withLock { state in
      state.blockedBy.values.filter { $0.server == server && !state.reported.contains($0.transaction) }
        .sorted { state.isNewer($1, than: $0) }
    }
  }

  func markReported(_ transaction: TransactionID) { state.withLock { _ = $0.reported.insert(transaction) } }

  /// A request that ended while it was not at the panel, and how it ended; to be finished.
  var expiredBlockedRequest: (request: PendingMobileAuthRequest, how: String)? {
    let now = clock.now
    return state.withLock { state in
      if let request = state.blockedBy.values.first(where: { $0.deadline <= now }) { return (request, "expired") }
      if let request = state.announced.values.first(where: { $0.deadline <= now }) { return (request, "expired") }
      return state.delisted.first.flatMap { state.announced[$0] }.map { ($0, $0.unexplainedEnding(at: now)) }
    }
  }

  /// The next deadline of a blocked or announced request.
  var nextExpiry: MonotonicInstant? {
    state.withLock { state in
      [state.blockedBy.values.map(\.deadline).min(), state.announced.values.map(\.deadline).min()].compactMap(\.self)
        .min()
    }
  }

  /// Wakes waiting tasks without a change to the inbox.
  func notifyWaiters() { signal.raise() }

  /// The connection state of each known server.
  public var connections: [TokenServerID: Reachability] { state.withLock { $0.connections } }

  /// Increases with every change; to be passed to `change(beyond:)`.
  public var generation: Int { signal.generation }

  /// Waits for a change, or until the limit if there is one.
  public func change(beyond generation: Int, until limit: MonotonicInstant? = nil) async throws {
    guard let limit else { return try await signal.wait(beyond: generation) }
    try await signal.wait(beyond: generation, until: limit, by: clock)
  }
}
