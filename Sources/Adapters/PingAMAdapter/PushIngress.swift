// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
package import MobileAuth
package import ServerBackends
import Synchronization

/// Receives push messages from every delivery channel: an MQTT subscriber or the control socket. One instance serves
/// all accounts at all AMs, because only the message's contents identify its account.
package final class PushIngress: Sendable {
  package enum IngressError: ReportedError, Equatable {
    case tooLarge
    case malformed(String)
    /// No account of this token has the message's mechanism.
    case unknownMechanism
    /// The signature or the token is invalid.
    case forged(String)
    /// Correctly signed, but not a message that this token supports.
    case notHandleable(String)
    /// A valid message beyond `mostAtOnce` and `interval`.
    case tooMany(AccountID)
    /// A valid message that could not be stored: deliver it again.
    case notStored(StateStoreError)
  }

  private struct State {
    var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    var lastListener = 0
    var rejected = 0
    var channelFaults: [String: String] = [:]
    /// When each account may have `mostAtOnce` messages again.
    var unused: [AccountID: MonotonicInstant] = [:]
  }

  /// Milliseconds. The difference between this board's clock and AM's above which the difference is reported.
  private static let toleratedSkew: Int64 = 300_000

  /// The maximum number of valid messages of one account at once; then one is accepted in each `interval`. Each is
  /// written to the storage.
  static let mostAtOnce = 240
  static let interval = Duration.seconds(15)

  let registry: any SharedEnrollmentRegistry
  private let messageStore: any PushMessageStore
  private let environment: TokenEnvironment
  private let state = Mutex(State())

  /// - Parameter environment: gets an event for each rejected message, and for changes that a message makes to its
  ///   account.
  package init(
    registry: any SharedEnrollmentRegistry, messageStore: any PushMessageStore, in environment: TokenEnvironment
  ) {
    self.registry = registry
    self.messageStore = messageStore
    self.environment = environment
  }

  /// Verifies and stores one message. When it returns, the message is durable. After an error, delivering the message
  /// again is useless, except for `.notStored`.
  /// - Parameter bytes: `{"messageId", "message"}`, Firebase's map, Apple's payload or Amazon's form, at most 16 KiB.
  @discardableResult
  package func accept(_ bytes: [UInt8]) throws(IngressError) -> PushAcceptance {
    do {
      return try take(bytes)
    } catch {
      if case .notStored = error { throw error }
      let count = state.withLock { state in
        state.rejected += 1
        return state.rejected
      }
      environment.report(.dropped("\(error) (\(count) so far)"))
      throw error
    }
  }

  /// Like `accept`, for a channel that redelivers a message until it is acknowledged.
  /// - Returns: whether to acknowledge: the message is durable, or permanently invalid.
  package func isFinal(_ bytes: [UInt8]) -> Bool {
    do { try accept(bytes) } catch { if case .notStored = error { return false } }
    return true
  }

  /// Reports whether the delivery channel of a mailbox is up (nil) or why it is not, so that the token shows no false
  /// connected state. Mailboxes without a channel, whose messages arrive only through the control socket, are not
  /// reported.
  package func set(channelFault: String?, of mailbox: String) {
    state.withLock { $0.channelFaults[mailbox] = channelFault }
    wake()
  }

  func channelFault(of mailbox: String) -> String? { state.withLock { $0.channelFaults[mailbox] } }

  private func wake() { for listener in state.withLock({ $0.listeners.values }) { listener.yield() } }

  /// Yields for each new message, as soon as it can be read, and for each change of a channel. Several changes may be
  /// merged into one.
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

  private func take(_ bytes: [UInt8]) throws(IngressError) -> PushAcceptance {
    let envelope = try Self.envelope(bytes)
    let token: JWS.Unverified
    let uid: String
    do throws(PushMessage.ParseError) {
      token = try PushMessage.token(envelope.token)
      uid = try PushMessage.mechanismUID(in: token)
    } catch {
      if case .malformed = error { throw .malformed("\(error)") }
      throw .forged("\(error)")
    }
    guard let (record, mechanism) = try find(uid) else { throw .unknownMechanism }
    let message = try Self.message(token, mechanism)
    let kept = StoredMessage(
      envelope, message, for: record.id, receivedAtMilliseconds: environment.wallClockMilliseconds)
    let now = environment.now
    guard state.withLock({ ($0.unused[record.id] ?? now) - now }) <= Self.interval * (Self.mostAtOnce - 1) else {
      throw .tooMany(record.id)
    }
    let isLearnt: Bool
    do { isLearnt = try learn(from: message, record, mechanism) } catch { throw .notStored(error) }
    guard isLearnt else { return try take(bytes) }
    let isStored: Bool
    do { isStored = try messageStore.store(kept.delivered, whenReadable: wake) } catch { throw .notStored(error) }
    guard isStored else { return .known(record.id) }
    // Not before: what is known, or cannot be stored, must not use up what others need.
    state.withLock { $0.unused[record.id] = max($0.unused[record.id] ?? now, now) + Self.interval }
    notify(what: message, of: record.id, mechanism)
    return .stored(record.id)
  }

  private static func envelope(_ bytes: [UInt8]) throws(IngressError) -> PushEnvelope {
    do { return try PushEnvelope(bytes) } catch {
      switch error {
      case .tooLarge: throw .tooLarge
      case .malformed(let what): throw .malformed(what)
      }
    }
  }

  private static func message(_ token: JWS.Unverified, _ mechanism: Mechanism) throws(IngressError) -> PushMessage {
    do { return try PushMessage(token, verifiedWith: mechanism.secret) } catch {
      switch error {
      case .forged, .algorithm, .nameless, .notAToken: throw .forged("\(error)")
      case .missing, .malformed: throw .notHandleable("\(error)")
      }
    }
  }

  private func find(_ uid: String) throws(IngressError) -> (AccountRecord, Mechanism)? {
    do throws(StateStoreError) {
      for record in try registry.accounts(atServersOf: PingAM.kind) {
        if let mechanism = try Mechanism(record), mechanism.metadata.uid == uid { return (record, mechanism) }
      }
      return nil
    } catch { throw .notStored(error) }
  }

  /// Updates the account: a message signed with its secret proves that AM has accepted the registration, and may
  /// contain AM's user ID.
  /// - Returns: false if the account has changed or been removed since it was read.
  private func learn(
    from message: PushMessage, _ known: AccountRecord, _ mechanism: Mechanism
  ) throws(StateStoreError) -> Bool {
    var (record, mechanism) = (known, mechanism)
    let isNew = record.stage == .enrolling
    let wasNameless = mechanism.metadata.userID == nil
    if wasNameless { mechanism.metadata.userID = message.userID }
    guard isNew || wasNameless && message.userID != nil else { return true }
    var entry: AuditEntry?
    if isNew {
      record.stage = .active
      mechanism.metadata.registration = nil
      entry = environment.auditEntry(
        .enrolled, account: record.id, detail: "at \(record.server); a push message confirmed it")
    }
    record = mechanism.stored(in: record)
    guard try registry.change(known, .put(record, entry)) else { return false }
    if let entry { environment.report(.audited(entry)) }
    if isNew { environment.report(.rosterChanged) }
    return true
  }

  private func notify(what message: PushMessage, of account: AccountID, _ mechanism: Mechanism) {
    if let named = message.userID, let known = mechanism.metadata.userID, named != known {
      environment.report(
        .trouble(account, "a push message names the user \(named.sanitized), who is not this account's: ignored"))
    }
    if let kind = message.unknownKind {
      environment.report(
        .trouble(account, "a push message is of the unknown kind \"\(kind.sanitized)\": used as a confirmation"))
    }
    guard let sentAt = message.sentAtMilliseconds else { return }
    let skew = environment.wallClockMilliseconds.subtractingReportingOverflow(sentAt)
    guard skew.overflow || skew.partialValue.magnitude > Self.toleratedSkew else { return }
    let minutes = skew.overflow ? "very many" : "\(skew.partialValue.magnitude / 60_000)"
    environment.report(
      .trouble(account, "this board's clock and AM's, or a message's sending and its arrival, are \(minutes) min apart")
    )
  }
}

extension PushIngress.IngressError {
  package var category: ErrorCategory {
    switch self {
    case .tooLarge, .malformed, .notHandleable: .badData
    case .unknownMechanism, .forged, .tooMany: .refused
    case .notStored: .unavailable
    }
  }

  package var description: String {
    switch self {
    case .tooLarge: "the push message is larger than \(PushEnvelope.longest) bytes"
    case .malformed(let what): "not a push message: \(what)"
    case .unknownMechanism: "the push message is for no account of this token"
    case .forged(let why): "the push message is not authentic: \(why)"
    case .notHandleable(let why): "the push message cannot be handled: \(why)"
    case .tooMany(let account):
      "the push message was dropped: for \(account) at most \(PushIngress.mostAtOnce) are accepted at once, then one "
        + "in \(PushIngress.interval.components.seconds) s"
    case .notStored(let fault): "the push message could not be stored: \(fault)"
    }
  }
}
