/// Handles exactly one request at a time, from the inbox to an outcome:
///
/// `idle → announced → opened → challenged → answering → settled → idle`
///
/// Nothing is approved without a gesture that began after this request was put to the person, and nothing is shown
/// as done before the token server said so. Whatever ends early ends as "not approved".
public struct Handler: Sendable {
  /// Repeats of one answer (protocol: 0.5 to 8 s).
  static let answerRetry = (from: Duration.milliseconds(500), to: Duration.seconds(8))
  /// After a vault failure, before the next try: a full disk does not empty itself at once.
  static let custodyPause = Duration.seconds(30)

  /// While an outcome is unknown, the server is asked again this often even if nothing else happens.
  static let unknownPause = Duration.seconds(30)

  let servers: [TokenServerID: any TokenServer]
  let inbox: Inbox
  let errands: Errands
  let panel: any Panel
  let custody: any Custody
  let timekeeper: any Timekeeper
  let random: @Sendable () -> Double
  let makeIdempotencyKey: @Sendable () -> String
  let mustEnrol: Bool
  let report: @Sendable (TokenEvent) -> Void

  /// - Parameters:
  ///   - mustEnrol: there is no account, or one that has to be enrolled again.
  ///   - errands: done between requests.
  ///   - random: uniform in 0..<1, for jitter.
  ///   - makeIdempotencyKey: a fresh UUID each time.
  public init(
    servers: [any TokenServer], inbox: Inbox, errands: Errands, panel: any Panel, custody: any Custody,
    timekeeper: any Timekeeper, mustEnrol: Bool, random: @escaping @Sendable () -> Double,
    makeIdempotencyKey: @escaping @Sendable () -> String,
    report: @escaping @Sendable (TokenEvent) -> Void
  ) {
    self.servers = Dictionary(uniqueKeysWithValues: servers.map { ($0.id, $0) })
    self.inbox = inbox
    self.errands = errands
    self.panel = panel
    self.custody = custody
    self.timekeeper = timekeeper
    self.mustEnrol = mustEnrol
    self.random = random
    self.makeIdempotencyKey = makeIdempotencyKey
    self.report = report
  }

  /// Runs until the task is cancelled.
  /// - Throws: `CancellationError`.
  public func run() async throws {
    while true {
      do {
        let generation = inbox.generation
        let isEverythingKnown = try await reconcile()
        if await errands.runNext(on: panel) {
          try Task.checkCancellation()
        } else if let request = inbox.requests.first {
          try await handle(request)
        } else {
          await panel.show(isEverythingKnown ? idleIndication : .outcomeUnknown)
          try await change(beyond: generation, within: isEverythingKnown ? nil : Self.unknownPause)
        }
      } catch let fault as CustodyFault {
        report(.custodyFailed(fault))
        await panel.show(.misconfigured)
        try await timekeeper.sleep(until: timekeeper.now + Self.custodyPause)
      }
    }
  }

  /// Waits for the inbox; with a limit, at most that long.
  private func change(beyond generation: Int, within limit: Duration?) async throws {
    guard let limit else { return try await inbox.change(beyond: generation) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await inbox.change(beyond: generation) }
      group.addTask { try await timekeeper.sleep(until: timekeeper.now + limit) }
      try await group.next()
    }
  }

  private var idleIndication: Indication {
    let connections = inbox.connections.values
    if connections.contains(.stopped) { return .misconfigured }
    if mustEnrol { return .mustEnrol }
    return connections.contains(.disconnected) ? .disconnected : .idle(pending: inbox.requests.count)
  }

  private func handle(_ pending: PendingMobileAuthRequest) async throws {
    guard let server = servers[pending.server] else { return inbox.finish(pending.transaction) }
    // Whoever has typed something wrong is in the middle of it: the request is theirs until it ends.
    var isPinned = false
    while true {
      switch try await decide(pending, at: server, isPinned: isPinned) {
      case .answered(let response):
        guard try await deliver(response, to: server) == .askAgain else { return }
        isPinned = true
      case .preempted: return
      case .expired: return try finish(pending, "expired")
      case .closed: return try finish(pending, await endingElsewhere(pending, at: server))
      case .refused(.pinIncorrect(let counts)):
        try await takeBack(pending, .pinWrong, counts)
        isPinned = true
      case .refused(let fault): return try await finish(pending, refusedBy: fault)
      }
    }
  }

  /// The request has left the pending list: by an answer elsewhere, or because the portal or the server ended it.
  private func endingElsewhere(_ pending: PendingMobileAuthRequest, at server: any TokenServer) async -> String {
    guard let status = try? await server.status(of: pending.transaction, account: pending.account) else {
      return "ended at the token server"
    }
    return Self.describe(elsewhere: status.state)
  }

  static func describe(elsewhere state: RemoteState) -> String {
    switch state {
    case .authenticated: "approved elsewhere"
    case .rejected: "denied elsewhere"
    case .expired, .cancelled, .superseded: state.rawValue
    case .open, .failed: "ended at the token server: \(state.rawValue)"
    }
  }

  // MARK: What is written down

  func entry(_ kind: AuditEntry.Kind, _ pending: PendingMobileAuthRequest, _ detail: String = "") -> AuditEntry {
    AuditEntry(
      kind, account: pending.account, transaction: pending.transaction, detail: detail,
      wallClockMilliseconds: timekeeper.wallClockMilliseconds)
  }

  func record(_ kind: AuditEntry.Kind, _ pending: PendingMobileAuthRequest, _ detail: String = "") throws(CustodyFault)
  {
    let entry = entry(kind, pending, detail)
    try custody.record(entry)
    report(.audited(entry))
  }

  /// The request has ended for this token; `outcome` is the last word in the audit chain.
  func finish(_ pending: PendingMobileAuthRequest, _ outcome: String) throws(CustodyFault) {
    let entry = entry(.settled, pending, outcome)
    try custody.settle(pending.transaction, entry)
    report(.audited(entry))
    inbox.finish(pending.transaction)
  }

  /// The server refused a step; what that means for the token is decided in one place, `TokenServerFault.effect`.
  func finish(_ pending: PendingMobileAuthRequest, refusedBy fault: TokenServerFault) async throws(CustodyFault) {
    if case .outcomeUnknown(let why) = fault {
      try finish(pending, "unknown for good: \(why)")
      return await panel.show(.outcomeUnknown)
    }
    if case .alreadyHandled(let state) = fault { return try finish(pending, Self.describe(elsewhere: state)) }
    try finish(pending, "not approved: \(fault)")
    if fault.effect == .stop { return inbox.set(.stopped, to: pending.server) }
    guard let loss = EnrolmentLoss(fault, at: pending.server, pending.account, pending.transaction) else { return }
    if let entry = try loss.carryOut(on: custody, at: timekeeper.wallClockMilliseconds) { report(.audited(entry)) }
    await panel.show(.mustEnrol)
    report(.rosterChanged)
  }
}
