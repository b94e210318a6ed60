// SPDX-License-Identifier: Apache-2.0
/// Handles exactly one request at a time, from the inbox to an outcome:
///
/// `idle → announced → opened → challenged → answering → settled → idle`
///
/// A request is approved only by a gesture that began after the request was shown, and shown as done only after the
/// token server has confirmed it. Every early end counts as "not approved".
public struct Handler: Sendable {
  /// Backoff between attempts to send one answer (protocol: 0.5 to 8 s).
  static let answerRetry = (from: Duration.milliseconds(500), to: Duration.seconds(8))
  /// How long the panel waits for the server's confirmation of an answer. After that the panel is free for the next
  /// request, and the delivery continues in the background.
  static let answerPatience = Duration.seconds(10)
  /// The pause after an error of the state store: a full disk does not recover at once.
  static let custodyPause = Duration.seconds(30)

  /// How often the server is queried while an outcome is unknown, even without a change.
  static let unknownPause = Duration.seconds(30)

  /// The pause before a prompt that the panel ended is armed again.
  static let rearmPause = Duration.seconds(1)

  let servers: [TokenServerID: any TokenServer]
  let inbox: Inbox
  let deliveries: Deliveries
  let openings: Openings
  /// The request shown last; stored in the inbox because it outlives this handler.
  var lastAsked: LastAsked { inbox.lastAsked }
  let errands: Errands
  let panel: any Panel
  let custody: any Custody
  let timekeeper: any Timekeeper
  let random: @Sendable () -> Double
  let makeIdempotencyKey: @Sendable () -> String
  let mustEnrol: Bool
  let report: @Sendable (TokenEvent) -> Void

  /// - Parameters:
  ///   - mustEnrol: whether there is no account, or an account that must be enrolled again.
  ///   - errands: the queue of panel tasks, which run between requests.
  ///   - random: uniform in 0..<1, for jitter.
  ///   - makeIdempotencyKey: returns a new UUID on each call.
  public init(
    servers: [any TokenServer], inbox: Inbox, errands: Errands, panel: any Panel, custody: any Custody,
    timekeeper: any Timekeeper, mustEnrol: Bool, random: @escaping @Sendable () -> Double,
    makeIdempotencyKey: @escaping @Sendable () -> String,
    report: @escaping @Sendable (TokenEvent) -> Void
  ) {
    self.servers = Dictionary(uniqueKeysWithValues: servers.map { ($0.id, $0) })
    self.inbox = inbox
    deliveries = Deliveries(inbox: inbox)
    openings = Openings(inbox: inbox, timekeeper: timekeeper)
    self.errands = errands
    self.panel = panel
    self.custody = custody
    self.timekeeper = timekeeper
    self.mustEnrol = mustEnrol
    self.random = random
    self.makeIdempotencyKey = makeIdempotencyKey
    self.report = report
  }

  /// Runs until the task is canceled.
  /// - Throws: `CancellationError`.
  public func run() async throws {
    do { try await handleAll() } catch {
      inbox.shown = nil
      await openings.cancel()
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
        let isEverythingKnown = try reconcile()
        let nextOpening = startOpenings(ranked)
        try openings.throwFault()
        if try await runErrand() {
          try forgetEndings()
        } else if let request = nextRequest, let opened = openings.take(request.transaction) {
          try await handle(request, opened)
          try forgetEndings()
        } else if let ending = openings.takeEnding() {
          await showUntilSomethingIsReady(ending)
        } else {
          await panel.show(isEverythingKnown ? idleIndication : .outcomeUnknown)
          try await inbox.change(beyond: generation, until: [nextOpening, inbox.nextLapse].compactMap(\.self).min())
        }
      } catch let fault as CustodyFault {
        report(.custodyFailed(fault))
        await panel.show(.misconfigured)
        try await timekeeper.sleep(until: timekeeper.now + Self.custodyPause)
      }
    }
  }

  /// Ends requests that expired or left the list while they were not shown.
  private func endLapsed() throws(CustodyFault) {
    while let (pending, how) = inbox.lapsed {
      if servers[pending.server] == nil { inbox.finish(pending) } else { try finish(pending, how) }
    }
    let count = inbox.takeExpiredUnannounced()
    if count > 0 { report(.expiredUnannounced(count)) }
  }

  /// The requests that can be shown to the user, newest first. A request whose answer may have counted is excluded.
  var askable: [PendingMobileAuthRequest] {
    let answered = deliveries.underway
    return inbox.requests.filter { $0.withheld == nil && !answered.contains($0.transaction) }
  }

  /// The requests in the order in which they are shown. Requests of a server to which an answer is being sent have to
  /// wait. Requests of disconnected servers come last.
  var ranked: [PendingMobileAuthRequest] {
    let (busy, connections) = (deliveries.servers, inbox.connections)
    let waiting = askable.filter { servers[$0.server] != nil && !busy.contains($0.server) }
    let isConnected = { (request: PendingMobileAuthRequest) in connections[request.server] == .connected }
    return waiting.filter(isConnected) + waiting.filter { !isConnected($0) }
  }

  /// The request to show next; nil if none is opened, or while a newer one is expected to be opened soon.
  private var nextRequest: PendingMobileAuthRequest? {
    for request in ranked {
      if openings.isOpened(request.transaction) { return request }
      if openings.isFresh(request.transaction) { return nil }
    }
    return nil
  }

  /// Whether a panel task can run. It waits for answers being sent to its server, because it may change the PIN that
  /// sealed them.
  var isErrandDue: Bool { errands.isWaiting(except: deliveries.servers) }

  private func runErrand() async throws -> Bool {
    guard isErrandDue else { return false }
    await begin(nil)
    let hasRun = await errands.runNext(on: panel, except: deliveries.servers)
    lastAsked.end(at: timekeeper.now)
    try Task.checkCancellation()
    return hasRun
  }

  /// Prepares the panel for a request, or for a panel task (nil). Shows `anotherRequest` if another subject was shown
  /// recently.
  func begin(_ subject: TransactionID?) async {
    await panel.note(openRequests: subject == nil ? 0 : askable.count)
    if lastAsked.begin(subject, at: timekeeper.now) { await panel.show(.anotherRequest) }
  }

  /// Discards outcomes of other requests: shown now, they would be mistaken for this request's outcome. They are in the
  /// audit log.
  private func forgetEndings() throws(CustodyFault) {
    while try deliveries.takeEnding() != nil {}
    _ = openings.takeEnding()
  }

  /// Shows how a request ended, because its user may be waiting, until another request is ready.
  private func showUntilSomethingIsReady(_ ending: Deliveries.Ending) async {
    await withTaskGroup { group in
      group.addTask { await show(ending) }
      group.addTask {
        while true {
          let generation = inbox.generation
          let nextOpening = startOpenings(ranked)
          if nextRequest != nil || isErrandDue { return }
          guard (try? await inbox.change(beyond: generation, until: nextOpening)) != nil else { return }
        }
      }
      await group.next()
      group.cancelAll()
    }
  }

  private var idleIndication: Indication {
    let connections = inbox.connections.values
    if connections.contains(.stopped) { return .misconfigured }
    if mustEnrol { return .mustEnrol }
    return connections.contains(.disconnected) || openings.isTroubled ? .disconnected : .idle(pending: askable.count)
  }

  private func handle(_ pending: PendingMobileAuthRequest, _ opened: MobileAuthRequest) async throws {
    guard let server = servers[pending.server] else { return inbox.finish(pending) }
    // The outcome of an earlier answer to this request, which ended just now.
    if let ending = try deliveries.takeEnding(of: pending.transaction) { await show(ending) }
    var opened: MobileAuthRequest? = opened
    // After a wrong entry the request stays on the panel until it ends.
    var isPinned = false
    defer { inbox.shown = nil }
    while true {
      let ending = try await decide(pending, opened, at: server, isPinned: isPinned)
      opened = nil
      switch ending {
      case .preempted, .makesWay, .expired, .closed, .refused: lastAsked.end(at: timekeeper.now)
      case .answered: lastAsked.forget()
      }
      switch ending {
      case .answered(let response):
        inbox.shown = nil
        guard try await deliver(response, to: server).asksAgain else { return }
        isPinned = true
      case .preempted: return inbox.notePreempted(pending.transaction)
      case .makesWay: return
      case .expired: return try finish(pending, "expired")
      case .closed: return finishElsewhere(pending, at: server)
      case .refused(.pinIncorrect(let counts)):
        await show(try takeBack(pending, .pinWrong, counts))
        isPinned = true
      case .refused(let fault):
        let ending = try refuse(pending, fault)
        if !ending.indications.isEmpty { lastAsked.forget() }
        return await show(ending)
      }
    }
  }

  /// Ends a request that has left the pending list. Queries the server for the reason in the background.
  private func finishElsewhere(_ pending: PendingMobileAuthRequest, at server: any TokenServer) {
    inbox.finish(pending)
    deliveries.start(pending.transaction, to: pending.server, as: .ending) { _ in
      try finish(pending, await endingElsewhere(pending, at: server))
      return Deliveries.Ending()
    }
  }

  /// The reason why the request ended: an answer elsewhere, or the portal or the server ended it.
  private func endingElsewhere(_ pending: PendingMobileAuthRequest, at server: any TokenServer) async -> String {
    guard let status = try? await server.status(of: pending.transaction, account: pending.account) else {
      return pending.unexplainedEnding(at: timekeeper.now)
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
}
