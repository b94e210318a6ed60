// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Fetches, decrypts and verifies requests in the background, one per server at a time: a server that does not respond
/// delays only its own requests.
final class Openings: Sendable {
  /// After this time an opening is canceled if the same server has another request.
  static let patience = Duration.seconds(10)
  /// How long a newer request that is being opened delays an older one that is ready, at most once in `patience` for
  /// each server: a server can replace a request that is being opened by another one.
  static let grace = Duration.seconds(1)
  /// Openings of one server: at most this many at once, then one per interval.
  static let pace = (burst: 10, interval: Duration.seconds(3))

  /// The backoff of a server after an opening that failed. Bounds the number of log lines that a server can cause with
  /// unusable requests.
  static let pauses = (first: Duration.milliseconds(500), longest: Duration.seconds(8))

  private enum Progress {
    case underway(Task<Void, Never>)
    case opened(MobileAuthRequest)
  }

  private struct Opening {
    let server: TokenServerID
    let began: MonotonicInstant
    var progress: Progress
    var isTroubled = false

    var isOpened: Bool { if case .opened = progress { true } else { false } }
    /// The start time; nil once the request is opened. A separate property, not read from `progress`, because Swift
    /// 6.3.1 crashes when it optimizes that.
    var start: MonotonicInstant? { isOpened ? nil : began }

    /// The end of its first `grace`; nil once the request is opened.
    var youngUntil: MonotonicInstant? { start.map { $0 + Openings.grace } }

    func cancel() { if case .underway(let task) = progress { task.cancel() } }
  }

  private struct State {
    var openings: [TransactionID: Opening] = [:]
    /// Requests that have already been deferred once in favor of others of their server.
    var late: Set<TransactionID> = []
    var pauses: [TokenServerID: (end: MonotonicInstant, length: Duration)] = [:]
    /// When each server's last grace began.
    var graces: [TokenServerID: MonotonicInstant] = [:]
    /// When each server could begin as many openings at once as at first.
    var rested: [TokenServerID: MonotonicInstant] = [:]
    var indications: [Indication] = []
    var fault: StateStoreError?

    /// When the server's next opening can begin; nil for now.
    func earliest(_ server: TokenServerID, _ now: MonotonicInstant) -> MonotonicInstant? {
      let paced = rested[server].map { $0 + Openings.pace.interval * (1 - Openings.pace.burst) }
      return [pauses[server]?.end, paced].compactMap(\.self).filter { $0 > now }.max()
    }

    func isFresh(_ opening: Opening, _ now: MonotonicInstant) -> Bool {
      opening.start != nil && graceEnd(opening.server, now) != nil
    }

    /// Until when the server's opening is worth waiting for; nil if that time has passed.
    func graceEnd(_ server: TokenServerID, _ now: MonotonicInstant) -> MonotonicInstant? {
      graces[server].map { $0 + Openings.grace }.flatMap { $0 > now ? $0 : nil }
    }

    mutating func noteStart(_ server: TokenServerID, _ now: MonotonicInstant) {
      rested[server] = max(rested[server] ?? now, now) + Openings.pace.interval
      if graces[server].map({ now - $0 >= Openings.patience }) ?? true { graces[server] = now }
    }
  }

  /// The result of an opening.
  enum Outcome: Sendable {
    case opened(MobileAuthRequest)
    /// The request cannot be shown; its audit entries are written. The indications are for the LED, in order.
    case ended([Indication])
  }

  private let state = Mutex(State())
  private let changes: ChangeSignal
  private let environment: TokenEnvironment

  /// - Parameter changes: raised at every change of the openings.
  init(changes: ChangeSignal, in environment: TokenEnvironment) {
    self.changes = changes
    self.environment = environment
  }

  /// Starts openings that are due, and cancels openings that are no longer listed or are deferred.
  /// - Parameters:
  ///   - candidates: requests in the order in which they would be shown. Those that are not listed are ignored: an
  ///     opening may have ended them since they were sorted.
  ///   - listed: every pending request; openings of other requests are dropped.
  ///   - body: throws `StateStoreError`, or `CancellationError`, after which the outcome is unknown.
  /// - Returns: when to call again even if nothing has changed.
  func start(
    _ candidates: [PendingMobileAuthRequest], listed: Set<TransactionID>,
    _ body: @escaping @Sendable (PendingMobileAuthRequest) async throws -> Outcome
  ) -> MonotonicInstant? {
    let now = environment.now
    return state.withLock { state in
      for (transaction, opening) in state.openings where !listed.contains(transaction) {
        opening.cancel()
        state.openings[transaction] = nil
      }
      state.late.formIntersection(listed)
      guard state.fault == nil else { return nil }
      var wakes: [MonotonicInstant] = []
      let candidates = candidates.filter { listed.contains($0.transaction) }
      for server in Set(candidates.map(\.server)) {
        let own = candidates.filter { $0.server == server }
        guard let next = next(of: own, &state, now, &wakes) else { continue }
        let task = Task { [self] in await run(next, body) }
        state.noteStart(server, now)
        state.openings[next.transaction] = Opening(server: server, began: now, progress: .underway(task))
        wakes += [state.graceEnd(server, now)].compactMap(\.self)
        if own.count > 1 { wakes.append(now + Self.patience) }
      }
      wakes += state.openings.values.compactMap(\.youngUntil).filter { $0 > now }
      return wakes.min()
    }
  }

  /// - Parameter own: the candidates of one server.
  private func next(
    of own: [PendingMobileAuthRequest], _ state: inout State, _ now: MonotonicInstant, _ wakes: inout [MonotonicInstant]
  ) -> PendingMobileAuthRequest? {
    let underway = state.openings.first { $0.value.server == own[0].server && $0.value.start != nil }
    let others = own.filter { state.openings[$0.transaction] == nil }
    guard let underway, let start = underway.value.start else {
      if let earliest = state.earliest(own[0].server, now) {
        wakes.append(earliest)
        return nil
      }
      // One opened request is enough: the others are opened later.
      let first = own.first { !state.late.contains($0.transaction) } ?? own[0]
      return state.openings[first.transaction] == nil ? first : nil
    }
    wakes += [state.graceEnd(own[0].server, now)].compactMap(\.self)
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
      // A canceled opening has been replaced or removed.
      let isCurrent = !Task.isCancelled && state.openings[request.transaction] != nil
      switch outcome {
      case .success(.ended(let indications)):
        // The end has taken the request off the list, so that the opening may be removed already: its user must see
        // the end all the same.
        if isCurrent { state.openings[request.transaction] = nil }
        let length = state.pauses[request.server].map { min($0.length * 2, Self.pauses.longest) } ?? Self.pauses.first
        state.pauses[request.server] = (environment.now + length, length)
        if !indications.isEmpty { state.indications = indications }
      case _ where !isCurrent: break
      case .success(.opened(let opened)):
        state.openings[request.transaction]?.progress = .opened(opened)
        state.pauses[request.server] = nil
      case .failure(let error):
        state.openings[request.transaction] = nil
        state.fault = error as? StateStoreError ?? state.fault
      }
    }
    changes.raise()
  }

  /// Records that the opening had to be retried.
  func noteTrouble(_ transaction: TransactionID) {
    state.withLock { $0.openings[transaction]?.isTroubled = true }
    changes.raise()
  }

  /// Whether an opening is failing and being retried.
  var isTroubled: Bool { state.withLock { $0.openings.values.contains { $0.isTroubled && !$0.isOpened } } }

  func isOpened(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.openings[transaction]?.isOpened ?? false }
  }

  /// Whether the opening is worth waiting for: `grace` has not passed since its server was last given it.
  func isFresh(_ transaction: TransactionID) -> Bool {
    let now = environment.now
    return state.withLock { state in state.openings[transaction].map { state.isFresh($0, now) } ?? false }
  }

  /// Whether an opening began less than `grace` ago: what can wait must not delay it.
  var hasYoung: Bool {
    let now = environment.now
    return state.withLock { state in state.openings.values.contains { ($0.youngUntil ?? now) > now } }
  }

  /// Returns the opened request and removes it, so that a later call opens it again.
  /// - Returns: nil if it is not opened.
  func take(_ transaction: TransactionID) -> MobileAuthRequest? {
    state.withLock { state in
      guard case .opened(let request) = state.openings[transaction]?.progress else { return nil }
      state.openings[transaction] = nil
      state.late.remove(transaction)
      return request
    }
  }

  /// Returns the indications of the last request that could not be shown; nil if there are none.
  func takeIndications() -> [Indication]? {
    state.withLock { state in
      defer { state.indications = [] }
      return state.indications.isEmpty ? nil : state.indications
    }
  }

  /// Throws, once, the error that prevented an audit entry.
  func throwFault() throws(StateStoreError) {
    let fault = state.withLock { state in
      defer { state.fault = nil }
      return state.fault
    }
    if let fault { throw fault }
  }

  /// Cancels all openings and waits for them.
  func cancel() async {
    let tasks = state.withLock { state in
      defer { state.openings = [:] }
      return state.openings.values.compactMap { if case .underway(let task) = $0.progress { task } else { nil } }
    }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
