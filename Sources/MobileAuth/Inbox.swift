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
  private struct State {
    var requests: [TransactionID: PendingMobileAuthRequest] = [:]
    /// Ended here; a list that was on its way meanwhile must not bring them back. Oldest first, bounded.
    var finished: [TransactionID] = []
    var connections: [TokenServerID: Reachability] = [:]
    /// Kept from the person. Outlives a server's absence, until it is listed otherwise or its time is over.
    var withheld: [TransactionID: PendingMobileAuthRequest] = [:]
    /// Those of them that the log has.
    var told: Set<TransactionID> = []

    mutating func updateWithheld(of server: TokenServerID, now: Moment) {
      // One whose time is over has left the list for that, and somebody has to say so.
      withheld = withheld.filter { $0.value.server != server || $0.value.deadline <= now }
      for request in requests.values where request.server == server && request.withheld != nil {
        withheld[request.transaction] = request
      }
      told.formIntersection(withheld.keys)
    }
  }

  private static let rememberedEndings = 256

  private let state = Mutex(State())
  private let signal = Signal()
  private let timekeeper: any Timekeeper

  public init(timekeeper: any Timekeeper) { self.timekeeper = timekeeper }

  /// What the server's list says now. Deadlines only ever move closer.
  public func replace(requestsOf server: TokenServerID, with list: [PendingMobileAuthRequest]) {
    let now = timekeeper.now
    state.withLock { state in
      let former = state.requests
      state.requests = former.filter { $0.value.server != server }
      for var request in list where !state.finished.contains(request.transaction) {
        if let known = former[request.transaction] {
          // Two servers may not share a transaction: the one that told first keeps it.
          guard known.server == server else { continue }
          request.deadline = min(request.deadline, known.deadline)
        }
        state.requests[request.transaction] = request
      }
      state.updateWithheld(of: server, now: now)
    }
    signal.raise()
  }

  /// The request has ended for this token and stays ended.
  public func finish(_ transaction: TransactionID) {
    state.withLock { state in
      state.requests[transaction] = nil
      state.withheld[transaction] = nil
      state.told.remove(transaction)
      state.finished.append(transaction)
      if state.finished.count > Self.rememberedEndings { state.finished.removeFirst() }
    }
    signal.raise()
  }

  /// Forgets everything about a server that is gone.
  public func forget(_ server: TokenServerID) {
    state.withLock { state in
      state.requests = state.requests.filter { $0.value.server != server }
      state.connections[server] = nil
    }
    signal.raise()
  }

  public func set(_ connection: Reachability, to server: TokenServerID) {
    state.withLock { $0.connections[server] = connection }
    signal.raise()
  }

  /// Waiting requests, newest first, without the expired.
  public var requests: [PendingMobileAuthRequest] {
    let now = timekeeper.now
    return state.withLock { state in
      state.requests = state.requests.filter { $0.value.deadline > now }
      return state.requests.values.sorted(by: PendingMobileAuthRequest.newestFirst)
    }
  }

  public func contains(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.requests[transaction] != nil }
  }

  // MARK: Requests of locked accounts

  /// It turned out to be one; the next list says for how long.
  func withhold(_ transaction: TransactionID, _ withholding: Withholding) {
    state.withLock { state in
      state.requests[transaction]?.withheld = withholding
      state.withheld[transaction] = state.requests[transaction]
    }
    signal.raise()
  }

  /// Those that the log has nothing of yet, oldest first.
  func untold(of server: TokenServerID) -> [PendingMobileAuthRequest] {
    state.withLock { state in
      state.withheld.values.filter { $0.server == server && !state.told.contains($0.transaction) }
    }.sorted { PendingMobileAuthRequest.newestFirst($1, $0) }
  }

  func noteTold(_ transaction: TransactionID) { state.withLock { _ = $0.told.insert(transaction) } }

  /// One whose time was over before it could be put to a person; to be finished.
  var lapsed: PendingMobileAuthRequest? {
    let now = timekeeper.now
    return state.withLock { $0.withheld.values.first { $0.deadline <= now } }
  }

  /// When the next of them lapses.
  var nextLapse: Moment? { state.withLock { $0.withheld.values.map(\.deadline).min() } }

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
