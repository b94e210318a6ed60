// SPDX-License-Identifier: Apache-2.0
public import Courier
public import MobileAuth
import Synchronization

/// The client of one realm of one AM: implements `TokenServer` over AM's `push/sns/message`. AM has no list of pending
/// requests; this client lists the messages that `PushIngress` has stored.
public final class PingAMTokenServer: TokenServer {
  struct Account: Sendable {
    let id: AccountID
    let mechanism: Mechanism
    let policies: AccountPolicies
  }

  /// The dependencies of this client.
  public struct Surroundings: Sendable {
    let ingress: PushIngress
    let registry: any SharedEnrolmentRegistry
    let deviceName: String
    let shelf: any MessageShelf
    let judge: (any PINJudge)?
    let takesPINForBiometric: Bool
    let timekeeper: any Timekeeper
    let isTamperedWith: @Sendable () -> Bool
    let report: @Sendable (TokenEvent) -> Void

    /// - Parameters:
    ///   - deviceName: the device name that AM shows.
    ///   - judge: verifies PINs; nil without a keypad. Requests that need a PIN can then only be denied.
    ///   - takesPINForBiometric: whether the PIN replaces the biometric check that AM requests.
    ///   - isTamperedWith: the result of the token's own tamper checks; called only for accounts whose policies need
    ///     it.
    ///   - report: called with events that concern a single account.
    public init(
      ingress: PushIngress, registry: any SharedEnrolmentRegistry, deviceName: String, shelf: any MessageShelf,
      judge: (any PINJudge)?, takesPINForBiometric: Bool,
      timekeeper: any Timekeeper, isTamperedWith: @escaping @Sendable () -> Bool,
      report: @escaping @Sendable (TokenEvent) -> Void
    ) {
      self.ingress = ingress
      self.registry = registry
      self.deviceName = deviceName
      self.shelf = shelf
      self.judge = judge
      self.takesPINForBiometric = takesPINForBiometric
      self.timekeeper = timekeeper
      self.isTamperedWith = isTamperedWith
      self.report = report
    }
  }

  private struct State {
    var deadlines: [TransactionID: Moment] = [:]
    /// Idempotency keys of answers that were sent and may have arrived without a response.
    var uncertain: Set<String> = []
  }

  /// 2026-01-01 in milliseconds since 1970. An earlier wall clock is not set.
  static let earliestPlausible: Int64 = 1_767_225_600_000

  public let id: TokenServerID
  let accounts: [Account]
  let client: PingAMClient
  let around: Surroundings
  private let state = Mutex(State())

  /// - Parameter accounts: the accounts of this server. Accounts that are not active are ignored.
  /// - Throws: `.damaged` if an account's keys or policies cannot be decoded.
  public init(
    _ record: TokenServerRecord, accounts: [AccountRecord], courier: any Courier, around: Surroundings
  ) throws(CustodyFault) {
    id = record.id
    var active: [Account] = []
    for record in accounts where record.stage == .active {
      guard let mechanism = try Mechanism(record) else { throw .damaged("the keys of account \(record.id)") }
      guard let policies = try? AccountPolicies(mechanism.facts.policies) else {
        throw .damaged("the policies of account \(record.id)")
      }
      active.append(Account(id: record.id, mechanism: mechanism, policies: policies))
    }
    self.accounts = active
    client = PingAMClient(courier: courier)
    self.around = around
  }

  /// Returns the counts of wrong PIN attempts. AM cannot report whether it still knows a mechanism.
  public func validate() async throws(TokenServerFault) -> Validation {
    var counts: [AccountID: FailureCounts] = [:]
    for account in accounts { counts[account.id] = try? around.judge?.counts(of: account.id) }
    return Validation(failureCounts: counts)
  }

  /// Streams changes of the delivery channel and of the stored messages. AM has no connection to monitor; the delivery
  /// channel's state is reported instead.
  public func hints() -> AsyncThrowingStream<Hint, any Error> {
    let changes = around.ingress.changes()
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
    do throws(CustodyFault) {
      for record in try around.registry.accounts() where record.server == id && record.stage == .active {
        guard let mailbox = try PingAM.mailbox(of: record) else { continue }
        if let fault = around.ingress.channelFault(of: mailbox) { return fault }
      }
      return nil
    } catch { return "\(error)" }
  }

  private var mailboxRefresh: MailboxRefresh {
    MailboxRefresh(
      client: client, ingress: around.ingress, registry: around.registry, server: id, deviceName: around.deviceName,
      timekeeper: around.timekeeper, isLocked: { [self] in isLocked($0) }, report: around.report)
  }

  public func pendingRequests() async throws(TokenServerFault) -> [PendingMobileAuthRequest] {
    let now = around.timekeeper.now
    var requests: [PendingMobileAuthRequest] = []
    var open: Set<TransactionID> = []
    var locks: [AccountID: AccountLock?] = [:]
    do throws(CustodyFault) {
      for delivered in try around.shelf.pendingMessages() {
        open.insert(delivered.transaction)
        if delivered.isBeingAnswered { continue }
        guard let account = accounts.first(where: { $0.id == delivered.account }) else { continue }
        // Messages that do not match the account's mechanism were reported on arrival.
        guard let kept = try? KeptMessage(delivered, of: account.mechanism) else { continue }
        let deadline = deadline(of: kept, now: now)
        if deadline > now {
          let lock = locks[account.id] ?? (try? lock(of: account))
          locks[account.id] = .some(lock)
          requests.append(pending(kept, deadline: deadline, lock: lock))
        } else {
          try around.shelf.end(delivered.transaction, as: .expired, answerKey: nil)
        }
      }
    } catch { throw .unreachable("\(error)") }
    state.withLock { [open] in $0.deadlines = $0.deadlines.filter { open.contains($0.key) } }
    return requests.sorted(by: PendingMobileAuthRequest.newestFirst)
  }

  private func pending(_ kept: KeptMessage, deadline: Moment, lock: AccountLock?) -> PendingMobileAuthRequest {
    let message = kept.message
    var info = ["type": message.kind.name]
    info["context"] = message.context.map { $0.forPeople(atMost: PushMessage.contextLimit) }
    info["payload"] = message.payload.map { $0.forPeople(atMost: PushMessage.payloadLimit) }
    return PendingMobileAuthRequest(
      transaction: kept.delivered.transaction, server: id, account: kept.delivered.account,
      sentAtMilliseconds: kept.sentAtMilliseconds, receivedAtMilliseconds: kept.delivered.receivedAtMilliseconds,
      timeToLive: .seconds(message.timeToLive),
      message: message.text.map { $0.forPeople(atMost: PushMessage.textLimit) }, userInfo: info, deadline: deadline,
      withheld: lock.map { Withholding(lock: $0.description, contents: Self.describe(kept)) })
  }

  /// The deadline of a request, counted from its arrival by this token's clocks. AM's clock may differ, and AM enforces
  /// its own deadline.
  func deadline(of kept: KeptMessage, now: Moment) -> Moment {
    let transaction = kept.delivered.transaction
    return state.withLock { state in
      if let deadline = state.deadlines[transaction] { return deadline }
      let life = kept.message.timeToLive * 1000
      let received = kept.delivered.receivedAtMilliseconds
      var passed: Int64 = 0
      // Subtract the time since arrival, which may precede a restart, if the wall clock was set at arrival.
      if received >= Self.earliestPlausible { passed = around.timekeeper.wallClockMilliseconds - received }
      let deadline = now + .milliseconds(life - min(max(passed, 0), life))
      state.deadlines[transaction] = deadline
      return deadline
    }
  }

  func account(_ id: AccountID) throws(TokenServerFault) -> Account {
    guard let account = accounts.first(where: { $0.id == id }) else { throw .notEnrolled }
    return account
  }

  // MARK: Answers without a response

  func setUncertain(_ idempotencyKey: String) { state.withLock { _ = $0.uncertain.insert(idempotencyKey) } }

  func isUncertain(_ idempotencyKey: String) -> Bool { state.withLock { $0.uncertain.contains(idempotencyKey) } }

  /// Records that the outcome of the answer is known and stored.
  func setCertain(_ idempotencyKey: String) { state.withLock { _ = $0.uncertain.remove(idempotencyKey) } }
}

extension PushMessage.Kind {
  var name: String {
    switch self {
    case .confirmation: "push"
    case .number: "push with a number"
    case .biometric: "push with user verification"
    }
  }
}
