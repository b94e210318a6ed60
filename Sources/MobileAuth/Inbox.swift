import Synchronization

/// How the token stands with one token server.
public enum Reachability: String, Sendable {
  case connected
  case disconnected
  /// The server said something only a person can mend.
  case stopped
}

/// The requests that wait, over all token servers. Fed only by pending lists, because the list is the truth: each
/// request stands here once, however often it was announced, until it expires, leaves the list, or is finished.
public final class Inbox: Sendable {
  /// At most this many requests of one server are taken from its list, the first ones; a list longer than this is not
  /// one that a user can answer.
  public static let longestList = 200
  /// For each server. More than a list can hold, so that no list makes the token forget what has ended.
  static let rememberedEndings = 5 * longestList
  /// A request that leaves the list less than this before its deadline has expired by the server's clock.
  private static let expiryTolerance = Duration.seconds(2)

  /// What is remembered about a listed request, also while the accounts are read again.
  private struct Known {
    let server: TokenServerID
    /// Grows with every request that this token sees for the first time. A server's timestamps decide no order.
    let arrival: Int
    var wasAnnounced = false
    var wasPreempted = false
  }

  /// Ended here; a list that was on its way meanwhile must not bring them back. Oldest first, bounded.
  private struct Endings {
    var order: [TransactionID] = []
    var all: Set<TransactionID> = []

    mutating func remember(_ transaction: TransactionID) {
      guard all.insert(transaction).inserted else { return }
      order.append(transaction)
      if order.count > Inbox.rememberedEndings { all.remove(order.removeFirst()) }
    }
  }

  private struct State {
    var requests: [TransactionID: PendingMobileAuthRequest] = [:]
    var known: [TransactionID: Known] = [:]
    var lastArrival = 0
    var finished: [TokenServerID: Endings] = [:]
    var connections: [TokenServerID: Reachability] = [:]
    /// Kept from the person. Outlives a server's absence, until it is listed otherwise or its time is over.
    var withheld: [TransactionID: PendingMobileAuthRequest] = [:]
    /// Those of them that the log has.
    var told: Set<TransactionID> = []
    /// In the audit chain as announced, and neither answered nor finished.
    var announced: [TransactionID: PendingMobileAuthRequest] = [:]
    /// Those of them that are no longer listed, before their deadline.
    var delisted: Set<TransactionID> = []
    var expiredUnannounced = 0
    var shown: TransactionID?

    mutating func updateWithheld(of server: TokenServerID, now: Moment) {
      // One whose time is over has left the list for that, and somebody has to say so.
      withheld = withheld.filter { $0.value.server != server || $0.value.deadline <= now }
      for request in requests.values where request.server == server && request.withheld != nil {
        withheld[request.transaction] = request
      }
      told.formIntersection(withheld.keys)
    }

    mutating func updateAnnounced(of server: TokenServerID, now: Moment) {
      for (transaction, request) in announced where request.server == server {
        if let listed = requests[transaction] {
          announced[transaction] = listed
          delisted.remove(transaction)
        } else if request.deadline > now + Inbox.expiryTolerance {
          delisted.insert(transaction)
        }
      }
    }

    /// Numbers what is new, the last of the list first: lists are newest first.
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

    mutating func dropExpired(now: Moment) {
      for (transaction, request) in requests where request.deadline <= now {
        requests[transaction] = nil
        if known[transaction]?.wasAnnounced != true, request.withheld == nil { expiredUnannounced += 1 }
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

  let lastAsked = LastAsked()
  private let state = Mutex(State())
  private let signal = Signal()
  private let timekeeper: any Timekeeper

  public init(timekeeper: any Timekeeper) { self.timekeeper = timekeeper }

  /// What the server's list says now, newest first, of which at most `longestList` are taken. Deadlines only ever move
  /// closer.
  public func replace(requestsOf server: TokenServerID, with list: [PendingMobileAuthRequest]) {
    let now = timekeeper.now
    let list = list.prefix(Self.longestList)
    state.withLock { state in
      state.dropExpired(now: now)
      let former = state.requests
      let finished = state.finished[server]?.all ?? []
      state.requests = former.filter { $0.value.server != server }
      for var request in list where request.server == server && !finished.contains(request.transaction) {
        if let known = former[request.transaction] {
          // Two servers may not share a transaction: the one that told first keeps it.
          guard known.server == server else { continue }
          request.deadline = min(request.deadline, known.deadline)
        }
        state.requests[request.transaction] = request
      }
      state.updateKnown(of: server, list)
      state.updateWithheld(of: server, now: now)
      state.updateAnnounced(of: server, now: now)
    }
    signal.raise()
  }

  /// The request has ended for this token and stays ended.
  public func finish(_ request: PendingMobileAuthRequest) {
    let transaction = request.transaction
    state.withLock { state in
      state.requests[transaction] = nil
      state.withheld[transaction] = nil
      state.told.remove(transaction)
      state.forgetAnnounced(transaction)
      state.finished[request.server, default: Endings()].remember(transaction)
    }
    signal.raise()
  }

  /// Forgets everything about a server that is gone.
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

  /// Waiting requests without the expired, newest first: by when this token saw them first, and those that came with
  /// one list in its order.
  public var requests: [PendingMobileAuthRequest] {
    let now = timekeeper.now
    return state.withLock { state in
      state.dropExpired(now: now)
      return state.requests.values.sorted { state.isNewer($0, than: $1) }
    }
  }

  public func contains(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.requests[transaction] != nil }
  }

  // MARK: What becomes of a request at the panel

  /// The request that the panel asks about now; nil if none.
  public internal(set) var shown: TransactionID? {
    get { state.withLock { $0.shown } }
    set { state.withLock { $0.shown = newValue } }
  }

  /// The audit chain says that it was announced, and will have to say how it ended.
  func noteAnnounced(_ request: PendingMobileAuthRequest) {
    state.withLock { state in
      guard state.requests[request.transaction] != nil else { return }
      state.announced[request.transaction] = request
      state.known[request.transaction]?.wasAnnounced = true
    }
  }

  /// An answer to it is journalled: what becomes of that says how it ended.
  func noteAnswered(_ transaction: TransactionID) { state.withLock { $0.forgetAnnounced(transaction) } }

  /// A newer one took the panel from it. That happens once.
  func notePreempted(_ transaction: TransactionID) {
    state.withLock { $0.known[transaction]?.wasPreempted = true }
  }

  func wasPreempted(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.known[transaction]?.wasPreempted ?? false }
  }

  /// How many expired without ever having been announced, since this was asked last.
  func takeExpiredUnannounced() -> Int {
    state.withLock { state in
      defer { state.expiredUnannounced = 0 }
      return state.expiredUnannounced
    }
  }

  // MARK: Requests of locked accounts

  /// It turned out to be one; the next list says for how long.
  func withhold(_ transaction: TransactionID, _ withholding: Withholding) {
    state.withLock { state in
      state.requests[transaction]?.withheld = withholding
      state.withheld[transaction] = state.requests[transaction]
      state.forgetAnnounced(transaction)
    }
    signal.raise()
  }

  /// Those that the log has nothing of yet, oldest first.
  func untold(of server: TokenServerID) -> [PendingMobileAuthRequest] {
    state.withLock { state in
      state.withheld.values.filter { $0.server == server && !state.told.contains($0.transaction) }
        .sorted { state.isNewer($1, than: $0) }
    }
  }

  func noteTold(_ transaction: TransactionID) { state.withLock { _ = $0.told.insert(transaction) } }

  /// One that ended while it was not at the panel, and how; to be finished.
  var lapsed: (request: PendingMobileAuthRequest, how: String)? {
    let now = timekeeper.now
    return state.withLock { state in
      if let request = state.withheld.values.first(where: { $0.deadline <= now }) { return (request, "expired") }
      if let request = state.announced.values.first(where: { $0.deadline <= now }) { return (request, "expired") }
      return state.delisted.first.flatMap { state.announced[$0] }.map { ($0, $0.unexplainedEnding(at: now)) }
    }
  }

  /// When the next of them lapses.
  var nextLapse: Moment? {
    state.withLock { state in
      [state.withheld.values.map(\.deadline).min(), state.announced.values.map(\.deadline).min()].compactMap(\.self)
        .min()
    }
  }

  /// Wakes whoever waits for a change, although nothing here has changed.
  func nudge() { signal.raise() }

  /// The servers known here, and whether each is connected.
  public var connections: [TokenServerID: Reachability] { state.withLock { $0.connections } }

  /// Grows with every change; to be passed to `change(beyond:)`.
  public var generation: Int { signal.generation }

  /// Waits for a change; with a limit, no longer than until then.
  public func change(beyond generation: Int, until limit: Moment? = nil) async throws {
    guard let limit else { return try await signal.wait(beyond: generation) }
    try await signal.wait(beyond: generation, until: limit, by: timekeeper)
  }
}
