/// Where the audit chain is kept.
public protocol AuditRecorder: Sendable {
  /// Appends to the audit chain, durably.
  func record(_ entry: AuditEntry) throws(CustodyFault)
}

/// What the handler needs kept safe. Every call has happened durably when it returns: a power cut right after it
/// changes nothing. A call that throws has changed nothing, and the handler then answers nothing.
public protocol Custody: AuditRecorder {
  /// Remembers that an answer is about to leave, before it does.
  func journal(_ intent: AnswerIntent, _ entry: AuditEntry) throws(CustodyFault)

  /// Forgets the intent and records how the request ended, both or neither.
  func settle(_ transaction: TransactionID, _ entry: AuditEntry) throws(CustodyFault)

  /// Answers that left, or were about to, and whose fate is not known: what a crash or an outage leaves behind.
  func unsettledIntents() throws(CustodyFault) -> [AnswerIntent]

  /// Destroys the account's keys but keeps its name, so that a person sees that it must be enrolled again.
  func dropKeys(of account: AccountID, _ entry: AuditEntry) throws(CustodyFault)

  /// Destroys everything about the account, other accounts untouched.
  func wipe(account: AccountID, _ entry: AuditEntry) throws(CustodyFault)

  /// Destroys everything about the token server and all its accounts, others untouched.
  func wipe(server: TokenServerID, _ entry: AuditEntry) throws(CustodyFault)
}

/// The vault could not do it.
public enum CustodyFault: Error, Equatable, Sendable, CustomStringConvertible {
  /// Disk full, read-only, I/O error; the text names the call.
  case storage(String)
  /// Something in the vault is not what was put there: wrong device secret, tampering, or a damaged card.
  case damaged(String)
  case unknown(String)

  public var description: String {
    switch self {
    case .storage(let what): "the vault cannot be written or read: \(what)"
    case .damaged(let what): "the vault is damaged, or belongs to another device secret: \(what)"
    case .unknown(let what): "the vault has no \(what)"
    }
  }
}

/// An answer on its way: enough to ask the server what became of it. Nothing to send it again without a person, but where
/// no server tells.
public struct AnswerIntent: Sendable, Equatable {
  public var transaction: TransactionID
  public var server: TokenServerID
  public var account: AccountID
  /// UUID sent as `Idempotency-Key`.
  public var idempotencyKey: String
  public var decision: Decision
  /// The bytes that left, of an answer whose server tells nobody what became of it: the same ones are sent again.
  public var body: [UInt8]?

  public init(
    transaction: TransactionID, server: TokenServerID, account: AccountID, idempotencyKey: String, decision: Decision,
    body: [UInt8]? = nil
  ) {
    self.transaction = transaction
    self.server = server
    self.account = account
    self.idempotencyKey = idempotencyKey
    self.decision = decision
    self.body = body
  }
}

/// One line of the audit chain, before the vault numbers, stamps and links it.
public struct AuditEntry: Sendable, Equatable {
  public enum Kind: String, Sendable, CaseIterable {
    case enrolled, removed, renamed, wiped, disenrolled, locked, unlocked
    case announced, opened, refused, decided, settled
    case loggedIn = "logged-in"
    case loggedOut = "logged-out"
    /// Lines that one server's requests would have added are not there.
    case leftOut = "left-out"
    /// A server's certificate is no longer recognized by its key.
    case pinsDropped = "pins-dropped"
    case pinSet = "pin-set"
    case pinChanged = "pin-changed"
    case pinWrong = "pin-wrong"
    case choiceWrong = "choice-wrong"
    case codeShown = "code-shown"
    case buttonStuck = "button-stuck"
    case panelUnavailable = "panel-unavailable"
  }

  public var kind: Kind
  public var account: AccountID?
  public var transaction: TransactionID?
  /// Facts for people, never a secret: outcome, reason, error number.
  public var detail: String
  /// Milliseconds since 1970 as the board believed it.
  public var wallClockMilliseconds: Int64

  public init(
    _ kind: Kind, account: AccountID? = nil, transaction: TransactionID? = nil, detail: String = "",
    wallClockMilliseconds: Int64
  ) {
    self.kind = kind
    self.account = account
    self.transaction = transaction
    self.detail = detail
    self.wallClockMilliseconds = wallClockMilliseconds
  }
}

extension Custody {
  /// Removes an account that may be gone already: a token server that is told of a removal tells the token of it in its
  /// turn, and whoever is first removes it.
  public func wipe(ifThere account: AccountID, _ entry: AuditEntry) throws(CustodyFault) {
    do { try wipe(account: account, entry) } catch {
      guard case .unknown = error else { throw error }
    }
  }
}
