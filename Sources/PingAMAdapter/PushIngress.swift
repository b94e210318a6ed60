import Cryptography
public import MobileAuth
import Synchronization

/// Where push messages come in, whoever brings them: a broker's mailbox, the control socket. One for all accounts at all
/// AMs, because only the message itself tells which it is for.
public final class PushIngress: Sendable {
  public enum Acceptance: Sendable, Equatable {
    /// It will be put to a person.
    case kept(AccountID)
    /// It came before, under this id or another; nothing has changed.
    case known(AccountID)
  }

  public enum Refusal: Error, Equatable, Sendable {
    case tooLarge
    case malformed(String)
    /// For no account of this token.
    case unknownMechanism
    /// Nothing in it can be believed.
    case forged(String)
    /// Signed as it should be, but not a message that this token understands.
    case notHandleable(String)
    /// It is good and could not be kept: to be brought again.
    case notKept(CustodyFault)
  }

  private struct State {
    var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    var lastListener = 0
    var rejected = 0
    var channelFaults: [String: String] = [:]
  }

  /// The board's clock and AM's may be so far apart before anybody is told.
  private static let toleratedSkew: Int64 = 300_000

  private let registry: any SharedEnrolmentRegistry
  private let shelf: any MessageShelf
  private let timekeeper: any Timekeeper
  private let report: @Sendable (TokenEvent) -> Void
  private let state = Mutex(State())

  /// - Parameter report: told what was dropped, and what a message changed about its account.
  public init(
    registry: any SharedEnrolmentRegistry, shelf: any MessageShelf, timekeeper: any Timekeeper,
    report: @escaping @Sendable (TokenEvent) -> Void
  ) {
    self.registry = registry
    self.shelf = shelf
    self.timekeeper = timekeeper
    self.report = report
  }

  /// Takes one message in. What it returns for is on the card, and nobody needs to bring it again; what it throws for
  /// never will be, but for `.notKept`.
  /// - Parameter bytes: `{"messageId", "message"}`, Firebase's map, Apple's payload or Amazon's form, at most 16 KiB.
  @discardableResult
  public func accept(_ bytes: [UInt8]) throws(Refusal) -> Acceptance {
    do {
      let acceptance = try take(bytes)
      if case .kept = acceptance { wake() }
      return acceptance
    } catch {
      if case .notKept = error { throw error }
      let count = state.withLock { state in
        state.rejected += 1
        return state.rejected
      }
      report(.dropped("\(error) (\(count) so far)"))
      throw error
    }
  }

  /// For a channel that brings a message until it is told to stop.
  /// - Returns: whether it may: the message is on the card, or will never be good.
  public func settles(_ bytes: [UInt8]) -> Bool {
    do { try accept(bytes) } catch { if case .notKept = error { return false } }
    return true
  }

  /// The channel that brings a mailbox's messages is up (nil), or why it is not: then nobody may think that all is well.
  /// Where there is no channel, as when messages only come over the control socket, there is nothing to be told.
  public func set(channelFault: String?, of mailbox: String) {
    state.withLock { $0.channelFaults[mailbox] = channelFault }
    wake()
  }

  func channelFault(of mailbox: String) -> String? { state.withLock { $0.channelFaults[mailbox] } }

  private func wake() { for listener in state.withLock({ $0.listeners.values }) { listener.yield() } }

  /// Speaks up after each message that was kept, and when the channel comes or goes; several at once may be one.
  func changes() -> AsyncStream<Void> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let number = state.withLock { state in
        state.lastListener += 1
        state.listeners[state.lastListener] = continuation
        return state.lastListener
      }
      continuation.onTermination = { [weak self] _ in
        self?.state.withLock { _ = $0.listeners.removeValue(forKey: number) }
      }
    }
  }

  // MARK: One message

  private func take(_ bytes: [UInt8]) throws(Refusal) -> Acceptance {
    let envelope = try Self.envelope(bytes)
    let token: JWS.Unverified
    let uid: String
    do throws(PushMessage.Flaw) {
      token = try PushMessage.token(envelope.token)
      uid = try PushMessage.mechanismUID(in: token)
    } catch { throw .forged("\(error)") }
    guard let (record, mechanism) = try find(uid) else { throw .unknownMechanism }
    let message = try Self.message(token, mechanism)
    let kept = KeptMessage(
      envelope, message, for: record.id, receivedAtMilliseconds: timekeeper.wallClockMilliseconds)
    let isLearnt: Bool
    do { isLearnt = try learn(from: message, record, mechanism) } catch { throw .notKept(error) }
    guard isLearnt else { return try take(bytes) }
    do { guard try shelf.keep(kept.delivered) else { return .known(record.id) } } catch { throw .notKept(error) }
    tell(what: message, of: record.id, mechanism)
    return .kept(record.id)
  }

  private static func envelope(_ bytes: [UInt8]) throws(Refusal) -> PushEnvelope {
    do { return try PushEnvelope(bytes) } catch {
      switch error {
      case .tooLarge: throw .tooLarge
      case .malformed(let what): throw .malformed(what)
      }
    }
  }

  private static func message(_ token: JWS.Unverified, _ mechanism: Mechanism) throws(Refusal) -> PushMessage {
    do { return try PushMessage(token, verifiedWith: mechanism.secret) } catch {
      switch error {
      case .forged, .algorithm, .nameless, .notAToken: throw .forged("\(error)")
      case .missing, .malformed: throw .notHandleable("\(error)")
      }
    }
  }

  private func find(_ uid: String) throws(Refusal) -> (AccountRecord, Mechanism)? {
    do throws(CustodyFault) {
      for record in try registry.accounts(atServersOf: PingAM.kind) {
        if let mechanism = try Mechanism(record), mechanism.facts.uid == uid { return (record, mechanism) }
      }
      return nil
    } catch { throw .notKept(error) }
  }

  /// A message signed with the account's secret proves that AM has taken the registration, and may name the person.
  /// - Returns: false if the account is another by now, or gone: its enrolment ends just now, or somebody removes it.
  private func learn(
    from message: PushMessage, _ known: AccountRecord, _ mechanism: Mechanism
  ) throws(CustodyFault) -> Bool {
    var (record, mechanism) = (known, mechanism)
    let isNew = record.stage == .enrolling
    let wasNameless = mechanism.facts.userID == nil
    if wasNameless { mechanism.facts.userID = message.userID }
    guard isNew || wasNameless && message.userID != nil else { return true }
    var entry: AuditEntry?
    if isNew {
      record.stage = .active
      mechanism.facts.registration = nil
      entry = AuditEntry(
        .enrolled, account: record.id, detail: "at \(record.server); a push message confirmed it",
        wallClockMilliseconds: timekeeper.wallClockMilliseconds)
    }
    record.secrets = mechanism.encoded
    guard try registry.change(known, .put(record, entry)) else { return false }
    if let entry { report(.audited(entry)) }
    if isNew { report(.rosterChanged) }
    return true
  }

  private func tell(what message: PushMessage, of account: AccountID, _ mechanism: Mechanism) {
    if let named = message.userID, let known = mechanism.facts.userID, named != known {
      report(
        .trouble(account, "AM calls the person of a push message \(named.forPeople), which is not this one: ignored"))
    }
    if let kind = message.unknownKind {
      report(.trouble(account, "a push message is of the unknown kind \"\(kind.forPeople)\": taken for a confirmation"))
    }
    guard let sentAt = message.sentAtMilliseconds else { return }
    let skew = timekeeper.wallClockMilliseconds.subtractingReportingOverflow(sentAt)
    guard skew.overflow || skew.partialValue.magnitude > Self.toleratedSkew else { return }
    let minutes = skew.overflow ? "very many" : "\(skew.partialValue.magnitude / 60_000)"
    report(
      .trouble(account, "this board's clock and AM's, or a message's sending and its arrival, are \(minutes) min apart")
    )
  }
}

extension PushIngress.Refusal: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tooLarge: "the push message is larger than \(PushEnvelope.longest) bytes"
    case .malformed(let what): "not a push message: \(what)"
    case .unknownMechanism: "the push message is for no account of this token"
    case .forged(let why): "the push message cannot be believed: \(why)"
    case .notHandleable(let why): "the push message cannot be handled: \(why)"
    case .notKept(let fault): "the push message could not be kept: \(fault)"
    }
  }
}
