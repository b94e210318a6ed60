public import MobileAuth

/// A message on the shelf, as people may see it: nothing of it is secret, and nothing trusted but that AM signed it.
public struct MessageFacts: Sendable, Equatable {
  public let transaction: TransactionID
  public let account: AccountID
  /// Milliseconds since 1970 as the board believed it.
  public let receivedAtMilliseconds: Int64
  public let state: DeliveredMessage.State
  /// Nil, as the texts are, for a message from before the account was enrolled anew: its signature cannot be checked.
  public let type: String?
  public let message: String?
  public let context: String?
}

extension PingAM {
  /// - Parameter now: the board's wall clock, in milliseconds since 1970: nobody notes the end of a request that nobody
  ///   was asked about before the service looks at the shelf again.
  public static func facts(
    of delivered: DeliveredMessage, for record: AccountRecord, now: Int64
  ) throws(CustodyFault) -> MessageFacts {
    let mechanism = try Mechanism(record)
    let kept = mechanism.flatMap { try? KeptMessage(delivered, of: $0) }
    return MessageFacts(
      transaction: delivered.transaction, account: delivered.account,
      receivedAtMilliseconds: delivered.receivedAtMilliseconds, state: state(of: delivered, kept?.message, now: now),
      type: kept?.message.kind.name, message: kept?.message.text?.forPeople(atMost: PushMessage.textLimit),
      context: kept?.message.context?.forPeople(atMost: PushMessage.contextLimit))
  }

  private static func state(
    of delivered: DeliveredMessage, _ message: PushMessage?, now: Int64
  ) -> DeliveredMessage.State {
    let received = delivered.receivedAtMilliseconds
    guard let message, delivered.state == .pending, !delivered.isBeingAnswered,
      received >= PingAMTokenServer.earliestPlausible, now >= received + message.timeToLive * 1000
    else { return delivered.state }
    return .expired
  }
}
