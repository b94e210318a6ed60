// SPDX-License-Identifier: Apache-2.0
import Logging
import MobileAuth
import Secrets
import ServerBackends
import ServiceLifecycle
import Synchronization
import Vault

/// Runs the request handler and one listener per token server, and restarts them when the accounts change.
final class TokenService: Service, UserState {
  private let vault: Vault
  private let panel: any Panel
  private let backends: Backends
  private let logger: Logger
  private let events: AsyncStream<TokenEvent>
  private let onReady: @Sendable () -> Void
  private let inbox: Inbox
  private let waits: LoopWaits
  private let state = Mutex(State())
  private let limitedLog: LimitedLog
  private let mailboxes: MailboxWatch
  private let recordsTexts: Bool
  private let memoryReturn = MemoryReturn()
  /// The events for programs.
  let publisher: EventPublisher
  private let (reloads, reloading) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  /// - Parameters:
  ///   - broker: where push messages and hints are received; nil if none is configured.
  ///   - recordsTexts: whether the audit chain gets the verified texts of requests.
  ///   - events: events from sources other than the servers of a round.
  init(
    panel: any Panel, backends: Backends, broker: BrokerSubscriber? = nil, recordsTexts: Bool = false, logger: Logger,
    events: AsyncStream<TokenEvent>,
    onReady: @escaping @Sendable () -> Void
  ) {
    vault = backends.vault
    self.panel = panel
    self.backends = backends
    self.recordsTexts = recordsTexts
    self.logger = logger
    self.events = events
    self.onReady = onReady
    limitedLog = LimitedLog(logger, clock: backends.environment.clock)
    publisher = EventPublisher(clock: backends.environment.clock)
    inbox = Inbox(in: backends.environment)
    waits = LoopWaits(in: backends.environment)
    panelTasks = PanelTaskQueue(changes: inbox.changes)
    mailboxes = MailboxWatch(backends, broker: broker) { logger.error("\($0)") }
  }

  /// In-memory state that outlives a round.
  private struct State {
    var servers: [TokenServerID: any TokenServerClient] = [:]
    var failureCounts: [AccountID: FailureCounts] = [:]
    var session: UserSession?
    var codes: [PendingCode] = []
    /// Accounts revoked or wiped by wrong PINs while in use.
    var lost: Set<AccountID> = []
    /// The accounts at the last round.
    var accounts: Set<AccountID> = []
    /// Whether the present round could not begin, because of an error.
    var hasFailed = false
  }

  /// How long the listeners of a round delay the next round, after they were canceled.
  private static let listenerPatience = Duration.seconds(5)

  let panelTasks: PanelTaskQueue
  private var environment: TokenEnvironment { backends.environment }

  /// The client for the account's server in this round.
  func server(of account: AccountRecord) -> (any TokenServerClient)? { state.withLock { $0.servers[account.server] } }

  /// The session of the logged-in user; nil after its expiry.
  var session: UserSession? {
    state.withLock { state in
      if let session = state.session, session.until <= environment.now { state.session = nil }
      return state.session
    }
  }

  func set(_ session: UserSession?) { state.withLock { $0.session = session } }

  /// Lets the LED show, while there is no account, where the enrollment stands; nil for "must be enrolled".
  func note(enrollment indication: Indication?) {
    inbox.panel.enrollment.set(indication)
    inbox.changes.raise()
  }

  /// The failure counts as last reported by the PIN verifiers.
  var failureCounts: [AccountID: FailureCounts] { state.withLock { $0.failureCounts } }

  func failureCounts(of account: AccountID) -> FailureCounts? { failureCounts[account] }

  func note(_ counts: FailureCounts, of account: AccountID) { state.withLock { $0.failureCounts[account] = counts } }

  /// Resets the failure count after a correct PIN.
  func noteRightPIN(of account: AccountID) { state.withLock { $0.failureCounts[account]?.previous = 0 } }

  /// Accounts removed because of wrong PINs, or revoked while a request was answered. The LED shows that enrollment is
  /// needed until an account is enrolled or the service restarts.
  var lostAccounts: [AccountID] { state.withLock { $0.lost.sorted { $0.text < $1.text } } }

  func noteLoss(of account: AccountID) {
    state.withLock { state in
      state.lost.insert(account)
      state.failureCounts[account] = nil
    }
  }

  /// Unexpired codes, at most one per account: the latest.
  var codes: [PendingCode] {
    state.withLock { state in
      state.codes.removeAll { $0.until <= environment.now }
      return state.codes
    }
  }

  private func note(_ code: PortalCode, of account: AccountID, _ transaction: TransactionID) {
    let pending = PendingCode(code, of: account, transaction, in: environment)
    state.withLock { state in
      state.codes.removeAll { $0.account == account }
      state.codes.append(pending)
    }
  }

  func log(_ entry: AuditEntry) { logger.info("\(entry)", metadata: entry.fields) }

  var connections: [TokenServerID: Reachability] { inbox.connectivity.all }
  /// Why servers are not connected.
  var faults: [TokenServerID: TokenServerError] { inbox.connectivity.faults }
  var pending: [PendingMobileAuthRequest] { inbox.pending.all }
  /// The request on the panel, and its changes.
  var shown: ShownRequest { inbox.panel.shown }
  /// Whether the user has begun to answer it.
  var answer: StartedAnswer { inbox.panel.startedAnswer }

  /// Shows a pending request next.
  func choose(_ transaction: TransactionID) { inbox.choose(transaction) }

  var handlerState: HandlerState {
    switch waits.loop {
    case .waiting(let number): .waiting(number)
    case .working(let limit): .working(until: limit)
    case .absent: state.withLock { $0.hasFailed } ? .failed : .absent
    }
  }

  /// Ends the request handler's wait; it looks for something to do, and waits again.
  func endWait() { inbox.changes.raise() }

  /// Lets no server count as connected while there is a reason why none can be reached.
  /// - Parameter reason: nil if servers may be reached again.
  func noteNetwork(outage reason: String?) {
    inbox.connectivity.setOutage(reason.map(TokenServerError.unreachable))
    wakePolls()
  }

  /// Polls every polled server now, after a hint that a login has begun.
  func wakePolls() {
    for server in state.withLock({ Array($0.servers.values) }) { (server as? any PollWaking)?.wake() }
  }

  /// Reads the accounts again, after one was enrolled or removed, perhaps by another process.
  func reload() {
    vault.noteChangesElsewhere()
    followMailboxes()
    reloading.yield()
  }

  /// Updates the subscriptions to the push topics. Nothing else restarts.
  func followMailboxes() { mailboxes.follow() }

  func run() async throws {
    await StopAfterAnswer(answer: answer, environment: environment, logger: logger).run { [self] in
      let listening = Task { [events, reporter = reporter()] in for await event in events { reporter(event) } }
      defer { listening.cancel() }
      followMailboxes()
      var reloads = reloads.makeAsyncIterator()
      var isFirst = true
      while !Task.isCancelled {
        let round = Task { await serveUntilCanceled() }
        if isFirst { onReady() }
        isFirst = false
        await withTaskCancellationHandler {
          _ = await reloads.next()
          // A dialog in progress is not interrupted: no server may end another's by changing its accounts.
          await panelTasks.suspend()
          round.cancel()
          await round.value
          panelTasks.resume()
        } onCancel: {
          round.cancel()
          reloading.finish()
        }
      }
      await mailboxes.end()
    }
  }

  /// Runs one round. After an error, most of all of the state store, it logs, shows the error on the LED, and begins
  /// again after a pause.
  private func serveUntilCanceled() async {
    while true {
      state.withLock { $0.hasFailed = false }
      do { try await serve() } catch is CancellationError { return } catch {
        limitedLog.report("no request can be answered: \(error)", at: .error, about: "the beginning of the handler")
        state.withLock { $0.hasFailed = true }
        await panel.show(.seeLog)
        guard (try? await environment.sleep(for: Handler.stateStorePause)) != nil else { return }
      }
    }
  }

  /// Runs one round with the current accounts.
  private func serve() async throws {
    let accounts = try vault.accounts()
    let damaged = try vault.damagedAccounts()
    for account in damaged { logger.error("\(StateStoreError.corrupt(.account(account)))") }
    let lostAnswers = try vault.takeLostAnswers(in: self.environment)
    for server in inbox.connectivity.all.keys { inbox.forget(server) }
    let activeAccounts = accounts.filter { $0.stage == .active }
    let active = Set(activeAccounts.map(\.server))
    let enrolled = try active.union(vault.servers(of: damaged))
    let report = reporter()
    let environment = environment.reporting(to: report)
    for entry in lostAnswers { environment.report(.audited(entry)) }
    let servers = backends.clients(for: try vault.servers().filter { active.contains($0.id) }, report: report) {
      logger.error("no request of \($0) can be answered: \($1)")
      inbox.connectivity.set(.stopped, to: $0)
    }
    let isAnyLost = state.withLock { state in
      let present = Set(activeAccounts.map(\.id))
      if !present.isSubset(of: state.accounts) { state.lost = [] }
      state.accounts = present
      state.servers = Dictionary(servers.map { ($0.id, $0) }) { first, _ in first }
      if let session = state.session, !activeAccounts.contains(where: { $0.id == session.account }) {
        state.session = nil
      }
      return !state.lost.isEmpty
    }
    if !active.isEmpty { inbox.panel.enrollment.set(nil) }
    let handler = Handler(
      servers: servers, enrolled: enrolled, inbox: inbox, panelTasks: panelTasks, drivers: backends.context.drivers,
      waits: waits, panel: panel, stateStore: vault,
      mustEnroll: isAnyLost || !damaged.isEmpty || activeAccounts.isEmpty
        || accounts.contains { $0.stage == .mustEnrollAgain },
      recordsTexts: recordsTexts, in: environment)
    let listeners = Listeners(
      servers.map { RequestListener(to: $0, inbox: inbox, stateStore: vault, in: environment) }, in: environment)
    var ending: any Error = CancellationError()
    do {
      try await withTaskCancellationHandler {
        try await handler.run()
      } onCancel: {
        listeners.cancel()
      }
    } catch { ending = error }
    for server in await listeners.end(within: Self.listenerPatience) {
      logger.error("the listener for \(server) does not end; requests are handled without waiting for it")
    }
    throw ending
  }

  private func reporter() -> @Sendable (TokenEvent) -> Void {
    { [logger, limitedLog, vault, publisher, self] event in
      publisher.publish(event)
      switch event {
      case .rosterChanged: reload()
      case .mailboxMoved:
        logger.info("\(event)", metadata: event.fields)
        followMailboxes()
      case .disconnected, .stopped, .retrying, .stateStoreFailed, .trouble, .dropped, .expiredUnannounced:
        limitedLog.report(event)
      case .audited(let entry):
        logger.info("\(event)", metadata: event.fields)
        // The end of a request.
        if entry.kind == .settled { memoryReturn.begin(in: backends.environment) }
      case .step: break
      case .code(let account, let transaction, let code):
        logger.info("\(event)", metadata: event.fields)
        note(code, of: account, transaction)
      case .counted(let account, let counts): note(counts, of: account)
      case .accountLost(let account):
        logger.warning("\(event)", metadata: event.fields)
        noteLoss(of: account)
      case .connected(let id):
        limitedLog.report(event, at: .info)
        giveBackFreedMemory()
        guard let server = state.withLock({ $0.servers[id] }) as? any TimeSource else { return }
        // Store the server's time: a board that starts without a clock uses it to check this server's certificate.
        Task { if let time = await server.serverTime { vault.noteConnection(at: time, with: id) } }
      }
    }
  }
}
