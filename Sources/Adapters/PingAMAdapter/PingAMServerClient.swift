// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import HTTP
package import MobileAuth
package import ServerBackends
import Synchronization

/// The client of one realm of one AM: implements `TokenServerClient` over AM's `push/sns/message`. AM has no list of
/// pending requests; this client lists the messages that `PushIngress` has stored.
package final class PingAMServerClient: BiometricChecks {
  struct Account: Sendable {
    let id: AccountID
    let mechanism: Mechanism
    let policies: AccountPolicies
  }

  /// The dependencies of this client.
  package struct Dependencies: Sendable {
    let ingress: PushIngress
    let messageStore: any PushMessageStore
    let settings: PingAMEnrollment.Settings
    let pinVerifier: (any PINVerifier)?
    let isTamperedWith: @Sendable () -> Bool
    let environment: TokenEnvironment
    let standIns: StandIns?

    /// - Parameters:
    ///   - ingress: also has the store of the accounts.
    ///   - settings: those with which accounts are enrolled.
    ///   - pinVerifier: verifies PINs; nil without a keypad. Requests that need a PIN can then only be denied.
    ///   - isTamperedWith: the result of the token's own tamper checks; called only for accounts whose policies need
    ///     it.
    ///   - environment: receives the events that concern a single account.
    ///   - standIns: what stands for AM's user verification besides the PIN; nil for nothing.
    package init(
      ingress: PushIngress, messageStore: any PushMessageStore, settings: PingAMEnrollment.Settings,
      pinVerifier: (any PINVerifier)?, isTamperedWith: @escaping @Sendable () -> Bool, in environment: TokenEnvironment,
      standIns: StandIns? = nil
    ) {
      self.ingress = ingress
      self.messageStore = messageStore
      self.settings = settings
      self.pinVerifier = pinVerifier
      self.isTamperedWith = isTamperedWith
      self.environment = environment
      self.standIns = standIns
    }
  }

  private struct State {
    var deadlines: [TransactionID: MonotonicInstant] = [:]
  }

  /// 2026-01-01 in milliseconds since 1970. An earlier wall clock is not set.
  static let earliestPlausible: Int64 = 1_767_225_600_000

  package let id: TokenServerID
  package let enrollments: Enrollments
  let accounts: [Account]
  let client: PingAMHTTPClient
  let dependencies: Dependencies
  let unconfirmed = UnconfirmedAnswers()
  private let state = Mutex(State())

  /// - Parameter accounts: the accounts of this server. Accounts that are not active are ignored.
  /// - Throws: `.corrupt` if an account's keys or policies cannot be decoded.
  package init(
    _ record: TokenServerRecord, accounts: [AccountRecord], http: any HTTPTransport, dependencies: Dependencies
  ) throws(StateStoreError) {
    id = record.id
    enrollments = Enrollments(record, accounts)
    var active: [Account] = []
    for record in accounts where record.stage == .active {
      guard let mechanism = try Mechanism(record) else { throw .corrupt(.keys(of: record.id)) }
      active.append(Account(id: record.id, mechanism: mechanism, policies: try record.parsedPolicies()))
    }
    self.accounts = active
    client = PingAMHTTPClient(http: http)
    self.dependencies = dependencies
  }

  package var standIns: StandIns? { dependencies.standIns }

  package func revoke(_ authenticator: String, of account: AccountID, because why: String) {
    standIns?.revoke(authenticator, of: account, because: why)
  }

  /// Returns the counts of wrong PIN attempts. AM cannot report whether it still knows a mechanism.
  package func validate() async throws(TokenServerError) -> Validation {
    var counts: [AccountID: FailureCounts] = [:]
    for account in accounts { counts[account.id] = try? dependencies.pinVerifier?.counts(of: account.id) }
    return Validation(failureCounts: counts)
  }

  /// Streams changes of the delivery channel and of the stored messages. AM has no connection to monitor; the delivery
  /// channel's state is reported instead.
  package func hints() -> AsyncThrowingStream<Hint, any Error> {
    let changes = dependencies.ingress.changes()
    // The stream is unbounded because no hint may be lost: some report the state of the channel.
    return AsyncThrowingStream { continuation in
      let task = Task { [self] in
        async let _ = mailboxRefresh.run()
        await follow(changes) { continuation.yield($0) }
        continuation.finish()
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  /// Yields a hint for each change. While the channel is down, messages can still arrive through the control socket.
  private func follow(_ changes: AsyncStream<Void>, _ yield: @Sendable (Hint) -> Void) async {
    var wasUp = false
    func look() {
      let fault = channelFault
      switch fault {
      case let why? where wasUp: yield(.disconnected("messages cannot be delivered: \(why)"))
      case nil where !wasUp: yield(.connected)
      default: yield(.pendingChanged)
      }
      wasUp = fault == nil
    }
    look()
    for await _ in changes { look() }
  }

  /// The fault of the first mailbox whose channel is down; nil if all are up. Reads the mailboxes from storage, because
  /// they can change.
  private var channelFault: String? {
    do throws(StateStoreError) {
      for record in try dependencies.ingress.registry.accounts() where record.server == id && record.stage == .active {
        guard let mailbox = record.delivery?.mailbox else { continue }
        if let fault = dependencies.ingress.channelFault(of: mailbox) { return fault }
      }
      return nil
    } catch { return "\(error)" }
  }

  private var mailboxRefresh: MailboxRefresh {
    MailboxRefresh(
      client: client, ingress: dependencies.ingress, registry: dependencies.ingress.registry, server: id,
      deviceName: dependencies.settings.deviceName, environment: dependencies.environment,
      isLocked: { [self] in isLocked($0) })
  }

  package func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
    let now = dependencies.environment.now
    var requests: [PendingMobileAuthRequest] = []
    var open: Set<TransactionID> = []
    var locks: [AccountID: AccountLock?] = [:]
    do throws(StateStoreError) {
      for delivered in try dependencies.messageStore.pendingMessages() {
        open.insert(delivered.transaction)
        if delivered.isBeingAnswered { continue }
        guard let account = accounts.first(where: { $0.id == delivered.account }) else { continue }
        // Messages that do not match the account's mechanism were reported on arrival.
        guard let kept = try? StoredMessage(delivered, of: account.mechanism) else { continue }
        let deadline = deadline(of: kept, now: now)
        if deadline > now {
          let lock = locks[account.id] ?? (try? lock(of: account))
          locks[account.id] = .some(lock)
          requests.append(pending(kept, deadline: deadline, lock: lock))
        } else {
          dependencies.messageStore.end(delivered.transaction, as: .expired, answerKey: nil)
        }
      }
    } catch { throw .unreachable("\(error)") }
    state.withLock { [open] in $0.deadlines = $0.deadlines.filter { open.contains($0.key) } }
    return requests.sorted(by: PendingMobileAuthRequest.newestFirst)
  }

  private func pending(_ kept: StoredMessage, deadline: MonotonicInstant, lock: AccountLock?)
    -> PendingMobileAuthRequest
  {
    let message = kept.message
    let summary = RequestSummary(
      type: message.kind.name, pushType: message.kind.pushType,
      numbers: dependencies.settings.showsNumbers ? message.kind.numbers : nil,
      origin: message.context.map { $0.sanitized(atMost: PushMessage.contextLimit) },
      payload: message.payload.map { $0.sanitized(atMost: PushMessage.payloadLimit) })
    return PendingMobileAuthRequest(
      transaction: kept.delivered.transaction, server: id, account: kept.delivered.account,
      sentAtMilliseconds: kept.sentAtMilliseconds, receivedAtMilliseconds: kept.delivered.receivedAtMilliseconds,
      timeToLive: .seconds(message.timeToLive),
      message: message.shownText, summary: summary, deadline: deadline,
      blockedBy: lock.map { BlockedRequestInfo(lock: $0.description, contents: Self.describe(kept)) })
  }

  /// The deadline of a request, counted from its arrival by this token's clocks. AM's clock may differ, and AM enforces
  /// its own deadline.
  func deadline(of kept: StoredMessage, now: MonotonicInstant) -> MonotonicInstant {
    let transaction = kept.delivered.transaction
    return state.withLock { state in
      if let deadline = state.deadlines[transaction] { return deadline }
      let life = kept.message.timeToLive * 1000
      let received = kept.delivered.receivedAtMilliseconds
      var passed: Int64 = 0
      // Subtract the time since arrival, which may precede a restart, if the wall clock was set at arrival.
      if received >= Self.earliestPlausible { passed = dependencies.environment.wallClockMilliseconds - received }
      let deadline = now + .milliseconds(life - min(max(passed, 0), life))
      state.deadlines[transaction] = deadline
      return deadline
    }
  }

  func account(_ id: AccountID) throws(TokenServerError) -> Account {
    guard let account = accounts.first(where: { $0.id == id }) else { throw .notEnrolled }
    return account
  }
}
