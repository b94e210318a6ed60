public import Courier
public import MobileAuth
import Synchronization

/// One realm of one AM: an adapter between the domain and `push/sns/message`. AM has no list of open logins; what the
/// ingress has put on the shelf is all there is.
public final class PingAMTokenServer: TokenServer {
  struct Account: Sendable {
    let id: AccountID
    let mechanism: Mechanism
    let policies: AccountPolicies
  }

  /// What the token has around it.
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
    ///   - deviceName: what AM is to call this device.
    ///   - judge: nil where nobody can type a PIN: what wants one is refused then.
    ///   - takesPINForBiometric: the PIN will do where AM wants a fingerprint.
    ///   - isTamperedWith: what the token's own checks say; asked for accounts whose policies care.
    ///   - report: told what concerns one account alone.
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
    /// Answers under these keys have left without an answer to them.
    var uncertain: Set<String> = []
  }

  /// 2026-01-01, in milliseconds: a board that believes it is earlier does not know what time it is.
  static let earliestPlausible: Int64 = 1_767_225_600_000

  public let id: TokenServerID
  let accounts: [Account]
  let client: PingAMClient
  let around: Surroundings
  private let state = Mutex(State())

  /// - Parameter accounts: those of this server; only active ones are spoken for.
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

  /// AM tells nothing about a mechanism but when it is used.
  public func validate() async throws(TokenServerFault) -> Validation {
    var counts: [AccountID: FailureCounts] = [:]
    for account in accounts { counts[account.id] = try? around.judge?.counts(of: account.id) }
    return Validation(failureCounts: counts)
  }

  /// There is no connection to AM that could break. The one that counts is that of whoever brings the messages.
  public func hints() -> AsyncThrowingStream<Hint, any Error> {
    let changes = around.ingress.changes()
    // None may be lost: some say whether messages come at all.
    return AsyncThrowingStream { continuation in
      let task = Task { [self] in
        async let _ = mailboxRefresh.run()
        await follow(changes) { continuation.yield($0) }
        continuation.finish()
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  /// While a channel is down messages may come another way.
  private func follow(_ changes: AsyncStream<Void>, _ yield: @Sendable (Hint) -> Void) async {
    var wasUp = false
    func look() {
      let fault = channelFault
      switch fault {
      case let why? where wasUp: yield(.disconnected("messages cannot be brought: \(why)"))
      case nil where !wasUp: yield(.connected)
      default: yield(.pendingChanged)
      }
      wasUp = fault == nil
    }
    look()
    for await _ in changes { look() }
  }

  /// Of the mailboxes that AM brings messages to, as they are on the card now: they may have moved.
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
        // One that is no longer the account's was told about when it came.
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

  /// Counted from the message's arrival, by this token's own clocks: AM's may be another, and AM judges anyway.
  func deadline(of kept: KeptMessage, now: Moment) -> Moment {
    let transaction = kept.delivered.transaction
    return state.withLock { state in
      if let deadline = state.deadlines[transaction] { return deadline }
      let life = kept.message.timeToLive * 1000
      let received = kept.delivered.receivedAtMilliseconds
      var passed: Int64 = 0
      // Before a restart, perhaps; on a board that knew the time then and knows it now.
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

  // MARK: Answers without an answer

  func setUncertain(_ idempotencyKey: String) { state.withLock { _ = $0.uncertain.insert(idempotencyKey) } }

  func isUncertain(_ idempotencyKey: String) -> Bool { state.withLock { $0.uncertain.contains(idempotencyKey) } }

  /// It has an answer now, and that is on the card.
  func setCertain(_ idempotencyKey: String) { state.withLock { _ = $0.uncertain.remove(idempotencyKey) } }
}

extension PushMessage.Kind {
  var name: String {
    switch self {
    case .confirmation: "push"
    case .number: "push with a number"
    case .biometric: "push for whoever this device knows"
    }
  }
}
