public import Secrets

/// A message about a request that was brought to this token. No server has a list of them to ask for, so that one that
/// was taken in must be kept.
public struct DeliveredMessage: Sendable {
  /// How its request stands, as far as this token knows.
  public enum State: String, Sendable {
    case pending
    /// The server took the answer.
    case approved, denied
    /// An answer left, and nobody will ever say whether it counted.
    case unknown
    /// It ended without an answer: refused by the server, given up here, or its time was over.
    case failed, expired
  }

  public let transaction: TransactionID
  public let account: AccountID
  /// The sender's name for the message.
  public let reference: String
  /// Milliseconds since 1970 as the board believed it.
  public let receivedAtMilliseconds: Int64
  public var state: State
  /// Idempotency key of the answer that ended it.
  public var answerKey: String?
  /// An answer to it is journalled and not settled.
  public var isBeingAnswered: Bool
  /// The adapter's own encoding.
  public let contents: SecretBytes

  public init(
    transaction: TransactionID, account: AccountID, reference: String, receivedAtMilliseconds: Int64,
    state: State = .pending, answerKey: String? = nil, isBeingAnswered: Bool = false, contents: SecretBytes
  ) {
    self.transaction = transaction
    self.account = account
    self.reference = reference
    self.receivedAtMilliseconds = receivedAtMilliseconds
    self.state = state
    self.answerKey = answerKey
    self.isBeingAnswered = isBeingAnswered
    self.contents = contents
  }
}

/// Where delivered messages are kept, the last ones also after their requests have ended: one that comes again must not
/// be put to a person again. Every call is durable when it returns.
public protocol MessageShelf: Sendable {
  /// The oldest of the account's messages, and of all, give way, but none that is being answered.
  /// - Returns: false if a message of that transaction or reference is there already; it stays as it is.
  /// - Throws: `.unknown` if there is no such account.
  func keep(_ message: DeliveredMessage) throws(CustodyFault) -> Bool

  /// Nil if it was never there, or has given way.
  func message(_ transaction: TransactionID) throws(CustodyFault) -> DeliveredMessage?

  /// In the order they came.
  func pendingMessages() throws(CustodyFault) -> [DeliveredMessage]

  /// Says how a pending one ended. One that has ended, or is gone, stays as it is.
  func end(_ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?) throws(CustodyFault)
}

/// How many messages a shelf keeps.
public enum ShelfLimits {
  public static let perAccount = 32
  public static let inAll = 512
}
