// SPDX-License-Identifier: Apache-2.0
/// Handles exactly one request at a time, from the inbox to an outcome:
///
/// `idle → announced → opened → challenged → answering → settled → idle`
///
/// A request is approved only by a gesture that began after the request was shown, and shown as done only after the
/// token server has confirmed it. Every early end counts as "not approved".
package struct Handler: Sendable {
  /// Backoff between attempts to send one answer (protocol: 0.5 to 8 s).
  static let answerRetry = (from: Duration.milliseconds(500), to: Duration.seconds(8))
  /// How long the panel waits for the server's confirmation of an answer. After that the panel is free for the next
  /// request, and the delivery continues in the background.
  static let answerPatience = Duration.seconds(10)
  /// The pause after an error of the state store: a full disk does not recover at once.
  package static let stateStorePause = Duration.seconds(30)
  /// How often the server is queried while an outcome is unknown, even without a change.
  static let unknownPause = Duration.seconds(30)

  /// Above this number of changes that wait for storage, they are written although a request is on the panel, so that
  /// the user's answer does not wait for them.
  static let longestQueue = 64

  let servers: [TokenServerID: any TokenServerClient]
  /// The servers with accounts, also those whose client could not be made.
  let enrolled: Set<TokenServerID>
  let inbox: Inbox
  let deliveries: Deliveries
  let openings: Openings
  /// The request shown last; a part of the inbox because it outlives this handler.
  var lastPrompt: LastPrompt { inbox.panel.last }
  /// The request on the panel.
  var shownRequest: ShownRequest { inbox.panel.shown }
  let panelTasks: PanelTaskQueue
  let drivers: AuthenticatorDrivers
  let waits: LoopWaits
  let panel: any Panel
  let stateStore: any StateStore
  let environment: TokenEnvironment
  let mustEnroll: Bool
  /// Whether the audit chain gets the texts of requests, not only their digests.
  let recordsTexts: Bool

  /// - Parameters:
  ///   - enrolled: the servers with accounts, also those whose client could not be made.
  ///   - mustEnroll: whether there is no account, or an account that must be enrolled again.
  ///   - recordsTexts: whether the audit chain gets the verified texts of requests.
  ///   - panelTasks: the queue of panel tasks, which run between requests.
  ///   - drivers: the drivers of authenticators.
  ///   - waits: gets the waits for changes.
  package init(
    servers: [any TokenServerClient], enrolled: Set<TokenServerID> = [], inbox: Inbox, panelTasks: PanelTaskQueue,
    drivers: AuthenticatorDrivers = AuthenticatorDrivers(), waits: LoopWaits? = nil,
    panel: any Panel, stateStore: any StateStore, mustEnroll: Bool, recordsTexts: Bool = false,
    in environment: TokenEnvironment
  ) {
    self.servers = Dictionary(servers.map { ($0.id, $0) }) { first, _ in first }
    self.enrolled = enrolled
    self.inbox = inbox
    // The LED does not wait for storage. After a crash before this, the server is queried. A change that cannot be
    // written is tried again, and the error is reported then.
    deliveries = Deliveries(changes: inbox.changes, in: environment) { try? stateStore.flush() }
    openings = Openings(changes: inbox.changes, in: environment)
    self.panelTasks = panelTasks
    self.drivers = drivers
    self.waits = waits ?? LoopWaits(in: environment)
    self.panel = panel
    self.stateStore = stateStore
    self.mustEnroll = mustEnroll
    self.recordsTexts = recordsTexts
    self.environment = environment
  }

  /// Runs until the task is canceled.
  /// - Throws: `CancellationError`.
  package func run() async throws {
    do { try await handleAll() } catch {
      waits.end()
      shownRequest.end(.interrupted)
      await openings.cancel()
      await deliveries.cancel()
      do { try stateStore.flush() } catch { environment.report(.stateStoreFailed(error)) }
      throw error
    }
  }

  private func handleAll() async throws {
    while true {
      waits.work()
      do {
        endUnseenRequests()
        let generation = inbox.changes.generation
        guard !inbox.panel.startedAnswer.isStopping else {
          // The service cancels this task.
          try await waits.during { try await inbox.change(beyond: generation) }
          continue
        }
        while let indications = try deliveries.takeIndications() {
          await show(indications)
          waits.work()
        }
        let isEverythingKnown = try reconcile()
        let nextOpening = startOpenings(ranked)
        try openings.throwFault()
        // An outcome that came since this pass began is shown first: the answer of this request, or at the server of
        // the panel task, may have had a wrong PIN.
        if isPanelTaskDue, !deliveries.hasOutcomes, try await runPanelTask() {
          try discardOutcomes(except: nil)
        } else if let request = nextRequest, !deliveries.hasOutcomes, let opened = openings.take(request.transaction) {
          try await handle(request, opened)
          try discardOutcomes(except: request.transaction)
        } else if let indications = openings.takeIndications() {
          await showUntilSomethingIsReady(indications)
        } else {
          await panel.show(isEverythingKnown ? idleIndication : .outcomeUnknown)
          // The LED of a request that is being opened, or was opened since this pass began, does not wait for storage.
          if !openings.hasYoung, nextRequest == nil { try stateStore.flush() }
          let limit = [nextOpening, inbox.nextExpiry()].compactMap(\.self).min()
          try await waits.during { try await inbox.change(beyond: generation, until: limit) }
        }
      } catch let fault as StateStoreError {
        environment.report(.stateStoreFailed(fault))
        await panel.show(.seeLog)
        waits.work(until: environment.now + Self.stateStorePause)
        try await environment.sleep(for: Self.stateStorePause)
      }
    }
  }

  /// Ends requests that expired or left the list while they were not shown.
  /// - Parameter shown: the request on the panel, which has another end; nil for none.
  func endUnseenRequests(except shown: TransactionID? = nil) {
    for (pending, how) in inbox.endedUnseen(except: shown) {
      if servers[pending.server] == nil { inbox.finish(pending) } else { finish(pending, how) }
    }
    for (server, count) in inbox.pending.takeExpiredUnannounced() {
      environment.report(.expiredUnannounced(server, count))
    }
  }

  /// The requests that can be shown to the user, newest first. A request whose answer may have counted is excluded.
  var askable: [PendingMobileAuthRequest] {
    let answered = deliveries.underway
    return inbox.pending.all.filter { $0.blockedBy == nil && !answered.contains($0.transaction) }
  }

  /// The requests in the order in which they are shown: the user's choice first, then as the servers have their turns.
  var ranked: [PendingMobileAuthRequest] {
    let now = environment.now
    let sorted = waiting.flatMap { requests in
      inbox.panel.turns.sort(requests.map { ($0, inbox.pending.number(of: $0.transaction)) }, at: now)
    }
    guard let chosen = inbox.panel.choice.chosen(at: now) else { return sorted }
    return sorted.filter { $0.transaction == chosen } + sorted.filter { $0.transaction != chosen }
  }

  /// The requests that can be shown, newest first: those of connected servers, then those of others. Requests of a
  /// server to which an answer is being sent have to wait.
  private var waiting: [[PendingMobileAuthRequest]] {
    let (busy, connections) = (deliveries.servers, inbox.connectivity.all)
    let waiting = askable.filter { servers[$0.server] != nil && !busy.contains($0.server) }
    let isConnected = { (request: PendingMobileAuthRequest) in connections[request.server] == .connected }
    return [waiting.filter(isConnected), waiting.filter { !isConnected($0) }]
  }

  /// Lets the user see the next pending request; after the last one, the first one.
  /// - Returns: false, without a change, if no other request is pending.
  func chooseNext(after pending: PendingMobileAuthRequest) -> Bool {
    let waiting = waiting.flatMap(\.self)
    guard waiting.count > 1, let index = waiting.firstIndex(where: { $0.transaction == pending.transaction }) else {
      return false
    }
    inbox.choose(waiting[(index + 1) % waiting.count].transaction, leaving: pending.transaction)
    return true
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
  var isPanelTaskDue: Bool { panelTasks.isWaiting(except: deliveries.servers) }

  /// Runs the panel task that is due.
  /// - Returns: whether one has run.
  private func runPanelTask() async throws -> Bool {
    await begin(nil)
    waits.work(until: environment.now + PanelTaskQueue.longestTask)
    defer { waits.work() }
    let hasRun = await panelTasks.runNext(on: panel, except: deliveries.servers)
    lastPrompt.end(at: environment.now)
    try Task.checkCancellation()
    return hasRun
  }

  /// Prepares the panel for a request, or for a panel task (nil). Shows `anotherRequest` if another subject was shown
  /// recently.
  func begin(_ subject: LastPrompt.Subject?) async {
    await panel.note(openRequests: subject == nil ? 0 : askable.count)
    if lastPrompt.begin(subject, at: environment.now) { await panel.show(.anotherRequest) }
  }

  /// Discards outcomes of other requests: shown now, they would be mistaken for the outcome of this request, or of the
  /// panel task (nil). They are in the audit log.
  private func discardOutcomes(except transaction: TransactionID?) throws(StateStoreError) {
    try deliveries.discardOutcomes(except: transaction)
    _ = openings.takeIndications()
  }

  /// Shows how a request ended, because its user may be waiting, until another request is ready.
  private func showUntilSomethingIsReady(_ indications: [Indication]) async {
    await withTaskGroup { group in
      group.addTask { await show(indications) }
      group.addTask {
        while true {
          let generation = inbox.changes.generation
          let nextOpening = startOpenings(ranked)
          if nextRequest != nil || isPanelTaskDue { return }
          guard (try? await inbox.change(beyond: generation, until: nextOpening)) != nil else { return }
        }
      }
      await group.next()
      group.cancelAll()
    }
  }

  private var idleIndication: Indication {
    let connections = inbox.connectivity.all.values
    if connections.contains(.stopped) { return .seeLog }
    if mustEnroll { return inbox.panel.enrollment.current ?? .mustEnroll }
    return connections.contains(.disconnected) || openings.isTroubled ? .disconnected : .idle(pending: askable.count)
  }

  private func handle(_ pending: PendingMobileAuthRequest, _ opened: MobileAuthRequest) async throws {
    guard let server = servers[pending.server] else { return inbox.finish(pending) }
    var opened: MobileAuthRequest? = opened
    var isAnswered = false
    inbox.panel.turns.begin(pending.server, number: inbox.pending.number(of: pending.transaction), at: environment.now)
    waits.work(until: pending.deadline)
    defer {
      shownRequest.end(.interrupted)
      inbox.panel.turns.leave(isAnswered: isAnswered, at: environment.now)
      inbox.panel.startedAnswer.end()
    }
    // Until this time no other request replaces this one, because the user is busy with it: after a wrong entry.
    var pinEnd = environment.now
    // Why the last entry did not count.
    var failure: AuthenticationStep.Failure?
    var unmadeAnswers = 0
    while !inbox.panel.startedAnswer.isStopping {
      let ending: ChallengeOutcome
      do { ending = try await decide(pending, opened, at: server, pinnedUntil: pinEnd, after: failure) } catch {
        // Nothing is asked any more.
        await panel.show(.disconnected)
        throw error
      }
      opened = nil
      shownRequest.end(ending.reason)
      lastPrompt.end(at: environment.now)
      switch ending {
      case .answered(let response, let sealing):
        let outcome = try await deliver(response, sealing, to: server)
        guard case .retryEntry(_, let fault) = outcome else {
          // Without an indication of how this request ended, its user may take the next one for it.
          if outcome.indications.isEmpty { lastPrompt.end(at: environment.now) } else { lastPrompt.forget() }
          isAnswered = true
          return
        }
        lastPrompt.end(at: environment.now)
        (pinEnd, failure) = (keepAfterWrongEntry(pending), .init(fault))
      case .preempted: return inbox.pending.keepOnPanel(pending.transaction)
      case .makesWay: return
      case .expired: return finish(pending, .expired)
      case .closed: return finishElsewhere(pending, at: server)
      case .refused(let fault):
        let outcome = reopen(pending, after: fault) ?? retrySealing(pending, after: fault, &unmadeAnswers)
        if let outcome {
          await show(outcome.indications)
          (pinEnd, failure) = (keepAfterWrongEntry(pending), .init(fault))
          continue
        }
        let indications = try refuse(pending, fault)
        if !indications.isEmpty { lastPrompt.forget() }
        return await show(indications)
      }
    }
  }
}
