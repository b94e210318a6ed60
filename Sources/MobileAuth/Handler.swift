/// Handles exactly one request at a time, from the inbox to an outcome:
///
/// `idle → announced → opened → challenged → answering → settled → idle`
///
/// Nothing is approved without a gesture that began after this request was put to the person, and nothing is shown
/// as done before the token server said so. Whatever ends early ends as "not approved".
public struct Handler: Sendable {
  /// Repeats of one answer (protocol: 0.5 to 8 s).
  static let answerRetry = (from: Duration.milliseconds(500), to: Duration.seconds(8))
  /// So long the panel waits for the server's word on an answer; then it is free for the next request, and the answer
  /// goes on being delivered by itself.
  static let answerPatience = Duration.seconds(10)
  /// After a vault failure, before the next try: a full disk does not empty itself at once.
  static let custodyPause = Duration.seconds(30)

  /// While an outcome is unknown, the server is asked again this often even if nothing else happens.
  static let unknownPause = Duration.seconds(30)

  let servers: [TokenServerID: any TokenServer]
  let inbox: Inbox
  let deliveries: Deliveries
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
    deliveries = Deliveries(inbox: inbox)
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
    do { try await handleAll() } catch {
      await deliveries.cancel()
      throw error
    }
  }

  private func handleAll() async throws {
    while true {
      do {
        try endLapsed()
        let generation = inbox.generation
        if let ending = try deliveries.takeEnding() { await show(ending) }
        let isEverythingKnown = try await reconcile()
        if isErrandDue, await errands.runNext(on: panel) {
          try Task.checkCancellation()
          try forgetEndings()
        } else if let request = nextRequest {
          try await handle(request)
          try forgetEndings()
        } else {
          await panel.show(isEverythingKnown ? idleIndication : .outcomeUnknown)
          let nextQuestion = isEverythingKnown ? nil : timekeeper.now + Self.unknownPause
          try await inbox.change(beyond: generation, until: [nextQuestion, inbox.nextLapse].compactMap(\.self).min())
        }
      } catch let fault as CustodyFault {
        report(.custodyFailed(fault))
        await panel.show(.misconfigured)
        try await timekeeper.sleep(until: timekeeper.now + Self.custodyPause)
      }
    }
  }

  /// Requests of locked accounts that were never put to a person.
  private func endLapsed() throws(CustodyFault) {
    while let pending = inbox.lapsed {
      if servers[pending.server] == nil { inbox.finish(pending.transaction) } else { try finish(pending, "expired") }
    }
  }

  /// Those that can be put to a person, newest first.
  private var askable: [PendingMobileAuthRequest] { inbox.requests.filter { $0.withheld == nil } }

  /// The newest. A server that an answer is still on its way to has to wait for that; one that cannot be reached makes
  /// way for those that can.
  var nextRequest: PendingMobileAuthRequest? {
    let (busy, connections) = (deliveries.servers, inbox.connections)
    let waiting = askable.filter { !busy.contains($0.server) }
    return waiting.first { connections[$0.server] == .connected } ?? waiting.first
  }

  /// One may change the PIN that an answer on its way was sealed with.
  var isErrandDue: Bool { errands.isWaiting && deliveries.underway.isEmpty }

  /// What ended while the panel was about something else would be taken for the end of that. The log has it.
  private func forgetEndings() throws(CustodyFault) {
    while try deliveries.takeEnding() != nil {}
  }

  private var idleIndication: Indication {
    let connections = inbox.connections.values
    if connections.contains(.stopped) { return .misconfigured }
    if mustEnrol { return .mustEnrol }
    return connections.contains(.disconnected) ? .disconnected : .idle(pending: askable.count)
  }

  private func handle(_ pending: PendingMobileAuthRequest) async throws {
    guard let server = servers[pending.server] else { return inbox.finish(pending.transaction) }
    // An answer to it that came back just now, before it is asked for again.
    if let ending = try deliveries.takeEnding(of: pending.transaction) { await show(ending) }
    // Whoever has typed something wrong is in the middle of it: the request is theirs until it ends.
    var isPinned = false
    while true {
      switch try await decide(pending, at: server, isPinned: isPinned) {
      case .answered(let response):
        guard try await deliver(response, to: server).asksAgain else { return }
        isPinned = true
      case .preempted: return
      case .expired: return try finish(pending, "expired")
      case .closed: return try finish(pending, await endingElsewhere(pending, at: server))
      case .refused(.pinIncorrect(let counts)):
        await show(try takeBack(pending, .pinWrong, counts))
        isPinned = true
      case .refused(.locked(let how)):
        try record(.refused, pending, "the account is \(how)")
        inbox.withhold(pending.transaction, Withholding(lock: how, contents: ""))
        return await panel.show(.misconfigured)
      case .refused(let fault): return await show(try finish(pending, refusedBy: fault))
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
  func finish(
    _ pending: PendingMobileAuthRequest, refusedBy fault: TokenServerFault
  ) throws(CustodyFault) -> Deliveries.Ending {
    var ending = Deliveries.Ending()
    if case .outcomeUnknown(let why) = fault {
      try finish(pending, "unknown for good: \(why)")
      ending.indications = [.outcomeUnknown]
    } else if case .alreadyHandled(let state) = fault {
      try finish(pending, Self.describe(elsewhere: state))
    } else {
      try finish(pending, "not approved: \(fault)")
      // Somebody may stand there and wait. Why it failed only the log can say.
      ending.indications = [.misconfigured]
      if fault.effect != .retry { servers[pending.server]?.ended(pending.transaction) }
      if fault.effect == .stop { inbox.set(.stopped, to: pending.server) }
      if let loss = EnrolmentLoss(fault, at: pending.server, pending.account, pending.transaction) {
        if let entry = try loss.carryOut(on: custody, at: timekeeper.wallClockMilliseconds) { report(.audited(entry)) }
        ending.indications = [.mustEnrol]
        report(.rosterChanged)
      }
    }
    return ending
  }

  func show(_ ending: Deliveries.Ending) async {
    for indication in ending.indications { await panel.show(indication) }
  }
}
