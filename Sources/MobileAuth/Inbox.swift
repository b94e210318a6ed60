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
  }

  private static let rememberedEndings = 256

  private let state = Mutex(State())
  private let signal = Signal()
  private let timekeeper: any Timekeeper

  public init(timekeeper: any Timekeeper) { self.timekeeper = timekeeper }

  /// What the server's list says now. Deadlines only ever move closer.
  public func replace(requestsOf server: TokenServerID, with list: [PendingMobileAuthRequest]) {
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
    }
    signal.raise()
  }

  /// The request has ended for this token and stays ended.
  public func finish(_ transaction: TransactionID) {
    state.withLock { state in
      state.requests[transaction] = nil
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

  /// Wakes whoever waits for a change, although nothing here has changed.
  func nudge() { signal.raise() }

  /// The servers known here, and whether each is connected.
  public var connections: [TokenServerID: Reachability] { state.withLock { $0.connections } }

  /// Grows with every change; to be passed to `change(beyond:)`.
  public var generation: Int { signal.generation }

  public func change(beyond generation: Int) async throws { try await signal.wait(beyond: generation) }
}
