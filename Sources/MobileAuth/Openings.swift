import Synchronization

/// Requests that are fetched, decrypted and verified beside the panel, one for each server at a time: a server that
/// does not answer delays only its own.
final class Openings: Sendable {
  /// After this time an opening makes way for another request of the same server.
  static let patience = Duration.seconds(10)
  /// A newer request that is being opened is waited for this long before an older one is shown.
  static let grace = Duration.seconds(1)

  /// After an opening that came to nothing its server is left alone for a while, longer each time: what it lists in
  /// vain costs a bounded number of lines in the log.
  static let pauses = (first: Duration.milliseconds(500), longest: Duration.seconds(8))

  private enum Progress {
    case underway(Task<Void, Never>)
    case opened(MobileAuthRequest)
  }

  private struct Opening {
    let server: TokenServerID
    let began: Moment
    var progress: Progress
    var isTroubled = false

    var isOpened: Bool { if case .opened = progress { true } else { false } }
    /// Nil once it is opened. A property of its own, not read from `progress`: Swift 6.3.1 aborts when it optimizes that.
    var start: Moment? { isOpened ? nil : began }

    func cancel() { if case .underway(let task) = progress { task.cancel() } }
  }

  private struct State {
    var openings: [TransactionID: Opening] = [:]
    /// Made way once for others of their server.
    var late: Set<TransactionID> = []
    var pauses: [TokenServerID: (end: Moment, length: Duration)] = [:]
    var ending: Deliveries.Ending?
    var fault: CustodyFault?
  }

  /// How an opening ended.
  enum Outcome: Sendable {
    case opened(MobileAuthRequest)
    /// There is nothing to ask; what had to be written down has been.
    case ended(Deliveries.Ending)
  }

  private let state = Mutex(State())
  private let inbox: Inbox
  private let timekeeper: any Timekeeper

  /// - Parameter inbox: signaled whenever something here has changed.
  init(inbox: Inbox, timekeeper: any Timekeeper) {
    self.inbox = inbox
    self.timekeeper = timekeeper
  }

  /// Starts what may start, and cancels what is no longer listed or has made way.
  /// - Parameters:
  ///   - candidates: what would be put to the user, in that order.
  ///   - listed: every request that waits; what is opened of others is dropped.
  ///   - body: throws `CustodyFault`, or `CancellationError`, after which nothing is known.
  /// - Returns: when to look again although nothing has changed.
  func start(
    _ candidates: [PendingMobileAuthRequest], listed: Set<TransactionID>,
    _ body: @escaping @Sendable (PendingMobileAuthRequest) async throws -> Outcome
  ) -> Moment? {
    let now = timekeeper.now
    return state.withLock { state in
      for (transaction, opening) in state.openings where !listed.contains(transaction) {
        opening.cancel()
        state.openings[transaction] = nil
      }
      state.late.formIntersection(listed)
      guard state.fault == nil else { return nil }
      var wakes: [Moment] = []
      for server in Set(candidates.map(\.server)) {
        let own = candidates.filter { $0.server == server }
        guard let next = next(of: own, &state, now, &wakes) else { continue }
        let task = Task { [self] in await run(next, body) }
        state.openings[next.transaction] = Opening(server: server, began: now, progress: .underway(task))
        wakes.append(now + Self.grace)
        if own.count > 1 { wakes.append(now + Self.patience) }
      }
      return wakes.min()
    }
  }

  /// - Parameter own: of one server.
  private func next(
    of own: [PendingMobileAuthRequest], _ state: inout State, _ now: Moment, _ wakes: inout [Moment]
  ) -> PendingMobileAuthRequest? {
    let underway = state.openings.first { $0.value.server == own[0].server && $0.value.start != nil }
    let others = own.filter { state.openings[$0.transaction] == nil }
    guard let underway, let start = underway.value.start else {
      if let pause = state.pauses[own[0].server], now < pause.end {
        wakes.append(pause.end)
        return nil
      }
      // One is enough: those after it are asked about later.
      let first = own.first { !state.late.contains($0.transaction) } ?? own[0]
      return state.openings[first.transaction] == nil ? first : nil
    }
    if now < start + Self.grace { wakes.append(start + Self.grace) }
    guard !others.isEmpty else { return nil }
    guard now >= start + Self.patience else {
      wakes.append(start + Self.patience)
      return nil
    }
    underway.value.cancel()
    state.openings[underway.key] = nil
    if others.allSatisfy({ state.late.contains($0.transaction) }) { state.late.subtract(own.map(\.transaction)) }
    state.late.insert(underway.key)
    return others.first { !state.late.contains($0.transaction) } ?? others[0]
  }

  private func run(
    _ request: PendingMobileAuthRequest, _ body: @Sendable (PendingMobileAuthRequest) async throws -> Outcome
  ) async {
    let outcome: Result<Outcome, any Error>
    do { outcome = .success(try await body(request)) } catch { outcome = .failure(error) }
    state.withLock { state in
      // A canceled one has lost its place, perhaps to another try.
      guard !Task.isCancelled, state.openings[request.transaction] != nil else { return }
      switch outcome {
      case .success(.opened(let opened)):
        state.openings[request.transaction]?.progress = .opened(opened)
        state.pauses[request.server] = nil
      case .success(.ended(let ending)):
        state.openings[request.transaction] = nil
        let length = state.pauses[request.server].map { min($0.length * 2, Self.pauses.longest) } ?? Self.pauses.first
        state.pauses[request.server] = (timekeeper.now + length, length)
        if !ending.indications.isEmpty { state.ending = ending }
      case .failure(let error):
        state.openings[request.transaction] = nil
        state.fault = error as? CustodyFault ?? state.fault
      }
    }
    inbox.nudge()
  }

  /// It had to be tried again.
  func noteTrouble(_ transaction: TransactionID) {
    state.withLock { $0.openings[transaction]?.isTroubled = true }
    inbox.nudge()
  }

  /// Whether something is opened in vain.
  var isTroubled: Bool { state.withLock { $0.openings.values.contains { $0.isTroubled && !$0.isOpened } } }

  func isOpened(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.openings[transaction]?.isOpened ?? false }
  }

  /// Whether its opening has begun so recently that it is worth waiting for.
  func isFresh(_ transaction: TransactionID) -> Bool {
    let now = timekeeper.now
    return state.withLock { state in
      state.openings[transaction]?.start.map { now < $0 + Self.grace } ?? false
    }
  }

  /// - Returns: nil if it is not opened. The next time it is opened again.
  func take(_ transaction: TransactionID) -> MobileAuthRequest? {
    state.withLock { state in
      guard case .opened(let request) = state.openings[transaction]?.progress else { return nil }
      state.openings[transaction] = nil
      state.late.remove(transaction)
      return request
    }
  }

  /// Of the last one that ended and has something to show.
  func takeEnding() -> Deliveries.Ending? {
    state.withLock { state in
      defer { state.ending = nil }
      return state.ending
    }
  }

  /// Throws what kept one from being written down, once.
  func throwFault() throws(CustodyFault) {
    let fault = state.withLock { state in
      defer { state.fault = nil }
      return state.fault
    }
    if let fault { throw fault }
  }

  /// Ends all of them where they are.
  func cancel() async {
    let tasks = state.withLock { state in
      defer { state.openings = [:] }
      return state.openings.values.compactMap { if case .underway(let task) = $0.progress { task } else { nil } }
    }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
