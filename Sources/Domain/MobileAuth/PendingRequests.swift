// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The pending requests of all token servers. Filled only from the servers' pending lists: each request is stored once,
/// even if it is announced repeatedly, until it expires, leaves the list or is finished.
package final class PendingRequests: Sendable {
  /// The maximum number of requests read from one server's list; the rest is ignored. No user can answer a longer list.
  package static let longestList = 200
  /// Per server. More than a list can contain, so that no list can displace the memory of ended requests.
  static let rememberedOutcomes = 5 * longestList

  /// Requests that ended on this token; a list requested before the end must not restore them. Oldest first, bounded.
  private struct RecentOutcomes {
    var order: [TransactionID] = []
    var all: Set<TransactionID> = []

    mutating func remember(_ transaction: TransactionID) {
      guard all.insert(transaction).inserted else { return }
      order.append(transaction)
      if order.count > PendingRequests.rememberedOutcomes { all.remove(order.removeFirst()) }
    }

    mutating func forget(_ transaction: TransactionID) {
      guard all.remove(transaction) != nil else { return }
      order.removeAll { $0 == transaction }
    }
  }

  private struct State {
    var requests: [TransactionID: PendingMobileAuthRequest] = [:]
    var arrivals = Arrivals()
    var announced = AnnouncedRequests()
    var finished: [TokenServerID: RecentOutcomes] = [:]
    var expiredUnannounced: [TokenServerID: Int] = [:]
    var lists = ListOrder<TokenServerID>()

    mutating func dropExpired(now: MonotonicInstant) {
      for (transaction, request) in requests where request.deadline <= now {
        requests[transaction] = nil
        if !arrivals.wasAnnounced(transaction), request.blockedBy == nil {
          expiredUnannounced[request.server, default: 0] += 1
        }
      }
    }

    /// Newest first.
    var sorted: [PendingMobileAuthRequest] { requests.values.sorted { arrivals.isNewer($0, than: $1) } }
  }

  private let state = Mutex(State())
  private let environment: TokenEnvironment

  init(in environment: TokenEnvironment) { self.environment = environment }

  // MARK: The lists

  /// Returns the number of a list that is requested after this.
  func nextList() -> Int { state.withLock { $0.lists.next() } }

  /// Replaces a server's pending list, newest first. At most `longestList` requests are taken. Deadlines can only
  /// become earlier.
  /// - Parameter number: of `nextList`.
  /// - Returns: the server's blocked requests, oldest first; nil, without a change, if a newer list was applied before.
  func replace(
    requestsOf server: TokenServerID, with list: [PendingMobileAuthRequest], number: Int
  ) -> [PendingMobileAuthRequest]? {
    let now = environment.now
    let list = list.prefix(Self.longestList)
    return state.withLock { state in
      guard state.lists.apply(number, of: server) else { return nil }
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
      state.arrivals.replace(of: server, list.filter { state.requests[$0.transaction]?.server == server })
      state.announced.update(of: server, listed: state.requests, now: now)
      return state.sorted.reversed().filter { $0.server == server && $0.blockedBy != nil }
    }
  }

  /// Ends the request for this token, permanently.
  func finish(_ request: PendingMobileAuthRequest) {
    let transaction = request.transaction
    state.withLock { state in
      state.requests[transaction] = nil
      state.announced.remove(transaction)
      state.finished[request.server, default: RecentOutcomes()].remember(transaction)
    }
  }

  /// Takes back that the request has ended: a later list can restore it.
  func forgetEnd(of request: PendingMobileAuthRequest) {
    state.withLock { $0.finished[request.server]?.forget(request.transaction) }
  }

  /// Deletes all requests of a server that was removed.
  func remove(requestsOf server: TokenServerID) {
    state.withLock { state in
      state.requests = state.requests.filter { $0.value.server != server }
      state.announced.remove(requestsOf: server)
    }
  }

  /// Pending requests that have not expired, newest first: ordered by when this token first saw them, and within one
  /// list by the list's order.
  package var all: [PendingMobileAuthRequest] {
    let now = environment.now
    return state.withLock { state in
      state.dropExpired(now: now)
      return state.sorted
    }
  }

  package func contains(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.requests[transaction] != nil }
  }

  /// Marks a request as blocked because its account is locked. The next list decides how long.
  /// - Returns: the request; nil if it is not pending.
  func block(_ transaction: TransactionID, _ info: BlockedRequestInfo) -> PendingMobileAuthRequest? {
    state.withLock { state in
      state.requests[transaction]?.blockedBy = info
      state.announced.remove(transaction)
      return state.requests[transaction]
    }
  }

  // MARK: What the audit chain and the panel have of them

  /// Records that the audit chain has an "announced" entry, which requires an entry of the request's end.
  func noteAnnounced(_ request: PendingMobileAuthRequest) {
    state.withLock { state in
      guard state.requests[request.transaction] != nil else { return }
      state.announced.insert(request)
      state.arrivals.noteAnnounced(request.transaction)
    }
  }

  /// Records that an answer is in the journal: the end of the answer is then the request's end.
  func noteAnswered(_ transaction: TransactionID) { state.withLock { $0.announced.remove(transaction) } }

  /// The number of a listed request: it increases with every request that this token sees for the first time.
  func number(of transaction: TransactionID) -> Int { state.withLock { $0.arrivals.number(of: transaction) } }

  /// Records that newer requests of its own server do not replace this one at the panel any more: the user has touched
  /// it, or a newer request has replaced it once.
  func keepOnPanel(_ transaction: TransactionID) { state.withLock { $0.arrivals.keepOnPanel(transaction) } }

  /// Records that the panel has asked for the PIN for this request.
  func notePINAsked(_ transaction: TransactionID) { state.withLock { $0.arrivals.notePINAsked(transaction) } }

  func wasPINAsked(_ transaction: TransactionID) -> Bool { state.withLock { $0.arrivals.wasPINAsked(transaction) } }

  func keepsPanel(_ transaction: TransactionID) -> Bool { state.withLock { $0.arrivals.keepsPanel(transaction) } }

  /// Records that no other request replaces this one at the panel until `PanelTurns.length` has passed, because the
  /// user is busy with it.
  func hold(_ transaction: TransactionID) {
    let end = environment.now + PanelTurns.length
    state.withLock { $0.arrivals.hold(transaction, until: end) }
  }

  /// When the hold ends; nil if there is none or it has ended.
  func holdEnd(of transaction: TransactionID) -> MonotonicInstant? {
    let now = environment.now
    return state.withLock { $0.arrivals.holdEnd(of: transaction) }.flatMap { $0 > now ? $0 : nil }
  }

  /// Returns the numbers of requests that expired without an announcement since the last call.
  func takeExpiredUnannounced() -> [TokenServerID: Int] {
    let now = environment.now
    return state.withLock { state in
      state.dropExpired(now: now)
      defer { state.expiredUnannounced = [:] }
      return state.expiredUnannounced
    }
  }

  /// The announced requests that expired or left the list, and how each ended.
  func endedAnnounced(at now: MonotonicInstant) -> [(request: PendingMobileAuthRequest, how: RequestOutcome)] {
    state.withLock { $0.announced.ended(at: now) }
  }

  /// The first deadline of an announced request that is after `now`.
  func nextAnnouncedDeadline(
    after now: MonotonicInstant, except shown: TransactionID? = nil
  ) -> MonotonicInstant? {
    state.withLock { $0.announced.deadlines(except: shown).filter { $0 > now }.min() }
  }
}
