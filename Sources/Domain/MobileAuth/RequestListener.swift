// SPDX-License-Identifier: Apache-2.0
/// Keeps the inbox up to date with one token server: validates the registration, streams hints and reads the pending
/// list after each. Runs until the task is canceled or the registration is gone.
package struct RequestListener: Sendable {
  /// How often the list is read without a hint, because a hint can be lost.
  static let listInterval = Duration.seconds(600)
  /// A connection that lasted this long was healthy: the next backoff starts at its minimum.
  static let healthyAfter = Duration.seconds(60)
  /// The minimum pause after the server reports that its administrator has disabled a function.
  static let switchedOffPause = Duration.seconds(300)

  /// The pause after an error that only an operator can resolve. The error is not signed: it can be of a proxy that
  /// ends TLS, or of a server that runs with a wrong configuration for a moment.
  static let stoppedPause = Duration.seconds(600)

  /// The minimum pause before an unconfirmed removal is queried again.
  static let removalPause = Duration.seconds(60)

  /// How long a hint waits while an answer is sent to its server: to read the list then would delay the LED. A server
  /// may announce the end of the answer's own request.
  static let answerPause = Duration.milliseconds(100)

  private let server: any TokenServerClient
  private let inbox: Inbox
  private let stateStore: any StateStore
  private let environment: TokenEnvironment

  /// The server that is listened to.
  package var id: TokenServerID { server.id }

  package init(
    to server: any TokenServerClient, inbox: Inbox, stateStore: any StateStore, in environment: TokenEnvironment
  ) {
    self.server = server
    self.inbox = inbox
    self.stateStore = stateStore
    self.environment = environment
  }

  /// Returns if the server has removed this device.
  /// - Throws: `CancellationError`.
  package func run() async throws {
    inbox.connectivity.set(.disconnected, to: server.id)
    var retry = Retry(from: .seconds(1), to: .seconds(60), in: environment)
    while true {
      let started = environment.now
      let outageEnds = inbox.connectivity.outageEnds.generation
      do {
        try await listen()
      } catch let fault as TokenServerError {
        // If the task was canceled (reload or stop), the lost connection is not reported as an error.
        try Task.checkCancellation()
        var isRemoval = false
        if case .unconfirmedRemoval = fault { isRemoval = true }
        let isStopped = fault.effect == .stop
        if fault.effect == .wipeServer, wipe(because: fault) { return }
        inbox.connectivity.set(isRemoval || isStopped ? .stopped : .disconnected, to: server.id, because: fault)
        environment.report(isStopped ? .stopped(server.id, fault) : .disconnected(server.id, fault))
        if environment.now - started >= Self.healthyAfter { retry.reset() }
        var pause = retry.next()
        if case .switchedOff = fault { pause = Self.switchedOffPause }
        if isStopped { pause = Self.stoppedPause }
        if isRemoval { pause = max(pause, Self.removalPause) }
        if case .rateLimited(let wanted?) = fault { pause = max(pause, min(wanted, .seconds(3600))) }
        guard case .unreachable = fault else {
          try await environment.sleep(for: pause)
          continue
        }
        // Not later than the network comes back.
        try await inbox.connectivity.outageEnds.wait(
          beyond: outageEnds, until: environment.now + pause, in: environment)
      }
    }
  }

  /// Runs one connection, from validation to its end.
  private func listen() async throws {
    try await validate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await follow() }
      group.addTask {
        while true {
          try await environment.sleep(for: Self.listInterval)
          try await refresh()
          // An answer was refused with an error that stops; the connection was there all the time.
          if inbox.connectivity[server.id] == .stopped { inbox.connectivity.set(.connected, to: server.id) }
        }
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  private func follow() async throws {
    let queue = HintQueue()
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask {
        do {
          for try await hint in server.hints() { queue.put(hint) }
          try Task.checkCancellation()
          throw TokenServerError.unreachable("the token server ended the event stream")
        } catch { queue.end(by: error) }
      }
      try await handleAll(of: queue)
    }
  }

  /// Handles hints until the queue ends. A hint that came before the end is handled: if the broker is not reachable,
  /// only such hints cause the list to be read.
  private func handleAll(of queue: HintQueue) async throws {
    var pacer = Pacer()
    while true {
      let hint = try await queue.next()
      let (now, earliest) = (environment.now, pacer.earliest(environment.now))
      if earliest > now { try await environment.sleep(until: earliest) }
      pacer.note(environment.now)
      try await handle(hint)
    }
  }

  private func handle(_ hint: Hint) async throws {
    switch hint {
    case .connected:
      try await refresh()
      inbox.connectivity.set(.connected, to: server.id)
      environment.report(.connected(server.id))
    case .disconnected(let why):
      try await refresh()
      let fault = TokenServerError.unreachable(why)
      inbox.connectivity.set(.disconnected, to: server.id, because: fault)
      environment.report(.disconnected(server.id, fault))
    case .pendingChanged:
      if inbox.panel.sentAnswer.isUnderway(to: server.id) { try await environment.sleep(for: Self.answerPause) }
      try await refresh()
    case .revoked:
      try await validate()
      try await refresh()
    }
  }

  private func refresh() async throws(TokenServerError) {
    let number = inbox.pending.nextList()
    let list = try await server.pendingRequests()
    // A listener that was ended must not overwrite what its successor has read.
    guard !Task.isCancelled else { throw .unreachable("canceled") }
    inbox.replace(requestsOf: server.id, with: list, number: number)
    for pending in inbox.blocked.unreported(of: server.id) { notify(pending) }
  }

  /// Records a blocked request. The user is not asked, but the log shows the attempt.
  private func notify(_ pending: PendingMobileAuthRequest) {
    guard let blockedBy = pending.blockedBy else { return }
    let entry: AuditEntry
    switch inbox.lines.take(server.id, at: environment.now) {
    case .allowed:
      entry = environment.auditEntry(
        .opened, of: pending, "account locked: \(blockedBy.contents); it is \(blockedBy.lock)")
    case .limitReached: entry = environment.leftOutEntry(of: pending)
    case .omitted: return inbox.blocked.markReported(pending.transaction)
    }
    do {
      try stateStore.record(entry)
      inbox.blocked.markReported(pending.transaction)
      environment.report(.audited(entry))
    } catch {
      environment.report(.stateStoreFailed(error))
    }
  }

  /// - Throws: also if an account that the server has removed, or its keys, cannot be deleted here: the server is
  /// queried again later.
  private func validate() async throws(TokenServerError) {
    let validation = try await server.validate()
    for account in validation.unconfirmedRemovals {
      environment.report(.trouble(account, "\(TokenServerError.unconfirmedRemoval(number: 9003))"))
    }
    for account in validation.unconfirmedDisenrollments {
      environment.report(.trouble(account, "\(TokenServerError.unconfirmedRemoval(number: 9020))"))
    }
    for (account, counts) in validation.failureCounts { environment.report(.counted(account, counts)) }
    let removals =
      validation.removedAccounts.map { revokeLocally($0, by: .userDeregistered) }
      + validation.disenrolledAccounts.map { revokeLocally($0, by: .disenrolled) }
    if removals.contains(.done) { environment.report(.rosterChanged) }
    if case .failed(let fault)? = removals.first(where: { $0 != .done }) {
      throw .unreachable("what the token server has removed cannot be deleted here: \(fault)")
    }
  }

  /// - Returns: whether the server is gone; false after an error of the state store.
  private func wipe(because fault: TokenServerError) -> Bool {
    inbox.forget(server.id)
    guard revokeLocally(nil, by: fault) == .done else { return false }
    environment.report(.rosterChanged)
    return true
  }

  /// How a local removal ended.
  private enum Removal: Equatable {
    /// What the fault revokes is gone, or belongs to a later enrollment, or cannot be read: then it is left out when
    /// the accounts are read again.
    case done
    case failed(StateStoreError)
  }

  /// Deletes what the fault revokes.
  /// - Parameter account: nil for the whole server.
  private func revokeLocally(_ account: AccountID?, by fault: TokenServerError) -> Removal {
    do {
      let loss = EnrollmentRevocation(
        fault, at: server.id, account, of: server.enrollments, keeping: account.flatMap { server.remainder(of: $0) })
      if let entry = try loss?.apply(on: stateStore, in: environment).entry { environment.report(.audited(entry)) }
      return .done
    } catch {
      environment.report(.stateStoreFailed(error))
      switch error {
      case .corrupt(.account), .corrupt(.server): return .done
      default: return .failed(error)
      }
    }
  }
}
