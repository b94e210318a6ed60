/// Keeps the inbox in step with one token server: validates, listens for hints, reads the list on each. Runs until
/// the task is cancelled, the registration is gone, or the server says something only a person can mend.
public struct Listener: Sendable {
  /// The list is read this often even if no hint comes: a hint may be lost for good.
  static let listInterval = Duration.seconds(600)
  /// A connection that lived this long was healthy: the next back-off starts small.
  static let healthyAfter = Duration.seconds(60)
  /// What an administrator has switched off is not asked for more often than this.
  static let switchedOffPause = Duration.seconds(300)

  /// A removal that is not confirmed is asked about again after this.
  static let removalPause = Duration.seconds(60)

  private let server: any TokenServer
  private let inbox: Inbox
  private let custody: any Custody
  private let timekeeper: any Timekeeper
  private let random: @Sendable () -> Double
  private let report: @Sendable (TokenEvent) -> Void

  public init(
    to server: any TokenServer, inbox: Inbox, custody: any Custody, timekeeper: any Timekeeper,
    random: @escaping @Sendable () -> Double, report: @escaping @Sendable (TokenEvent) -> Void
  ) {
    self.server = server
    self.inbox = inbox
    self.custody = custody
    self.timekeeper = timekeeper
    self.random = random
    self.report = report
  }

  /// How the listener ended by itself.
  public enum End: Sendable, Equatable {
    case serverWiped
    case stopped(TokenServerFault)
  }

  /// - Throws: `CancellationError`.
  public func run() async throws -> End {
    inbox.set(.disconnected, to: server.id)
    var retry = Retry(from: .seconds(1), to: .seconds(60), random: random)
    while true {
      let started = timekeeper.now
      do {
        try await listen()
      } catch let fault as TokenServerFault {
        // Begun again with other accounts, or ending: that the connection was given up is no trouble.
        try Task.checkCancellation()
        var isRemoval = false
        if case .unconfirmedRemoval = fault { isRemoval = true }
        inbox.set(isRemoval ? .stopped : .disconnected, to: server.id)
        if let end = react(to: fault) { return end }
        report(.disconnected(server.id, "\(fault)"))
        if timekeeper.now - started >= Self.healthyAfter { retry.reset() }
        var pause = retry.next()
        if case .switchedOff = fault { pause = Self.switchedOffPause }
        if isRemoval { pause = max(pause, Self.removalPause) }
        if case .rateLimited(let wanted?) = fault { pause = max(pause, min(wanted, .seconds(3600))) }
        try await timekeeper.sleep(until: timekeeper.now + pause)
      }
    }
  }

  /// One connection, from validation to its end.
  private func listen() async throws {
    try await validate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await follow() }
      group.addTask {
        while true {
          try await timekeeper.sleep(until: timekeeper.now + Self.listInterval)
          try await refresh()
        }
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  private func follow() async throws {
    for try await hint in server.hints() {
      switch hint {
      case .connected:
        try await refresh()
        inbox.set(.connected, to: server.id)
        report(.connected(server.id))
      case .disconnected(let why):
        try await refresh()
        inbox.set(.disconnected, to: server.id)
        report(.disconnected(server.id, why))
      case .pendingChanged: try await refresh()
      case .revoked:
        try await validate()
        try await refresh()
      }
    }
    try Task.checkCancellation()
    throw TokenServerFault.unreachable("the token server ended the event stream")
  }

  private func refresh() async throws(TokenServerFault) {
    inbox.replace(requestsOf: server.id, with: try await server.pendingRequests())
    for pending in inbox.untold(of: server.id) { tell(pending) }
  }

  /// Nobody is asked about it, but whoever reads the log should see who tried.
  private func tell(_ pending: PendingMobileAuthRequest) {
    guard let withheld = pending.withheld else { return }
    let entry = AuditEntry(
      .opened, account: pending.account, transaction: pending.transaction,
      detail: "account locked: \(withheld.contents); it is \(withheld.lock)",
      wallClockMilliseconds: timekeeper.wallClockMilliseconds)
    do {
      try custody.record(entry)
      inbox.noteTold(pending.transaction)
      report(.audited(entry))
    } catch {
      report(.custodyFailed(error))
    }
  }

  private func validate() async throws(TokenServerFault) {
    let validation = try await server.validate()
    for account in validation.removedAccounts { lose(account, by: .userDeregistered) }
    for account in validation.unconfirmedRemovals {
      report(.trouble(account, "\(TokenServerFault.unconfirmedRemoval(number: 9003))"))
    }
    for account in validation.unconfirmedDisenrollments {
      report(.trouble(account, "\(TokenServerFault.unconfirmedRemoval(number: 9020))"))
    }
    for account in validation.disenrolledAccounts { lose(account, by: .disenrolled) }
    for (account, counts) in validation.failureCounts { report(.counted(account, counts)) }
    if !validation.removedAccounts.isEmpty || !validation.disenrolledAccounts.isEmpty { report(.rosterChanged) }
  }

  /// - Returns: an end, or nil to try again.
  private func react(to fault: TokenServerFault) -> End? {
    switch fault.effect {
    case .wipeServer:
      inbox.forget(server.id)
      lose(nil, by: fault)
      report(.rosterChanged)
      return .serverWiped
    case .stop:
      inbox.set(.stopped, to: server.id)
      report(.stopped(server.id, fault))
      return .stopped(fault)
    case .retry, .wipeAccount, .dropKeys, .drop, .withhold, .askAgain: return nil
    }
  }

  /// - Parameter account: nil for the whole server.
  private func lose(_ account: AccountID?, by fault: TokenServerFault) {
    do {
      let loss = EnrolmentLoss(fault, at: server.id, account)
      guard let entry = try loss?.carryOut(on: custody, at: timekeeper.wallClockMilliseconds) else { return }
      report(.audited(entry))
    } catch {
      report(.custodyFailed(error))
    }
  }
}
