public import Secrets

/// The server's name for one mobile-authentication request: a UUID, lower case.
public struct TransactionID: Hashable, Sendable, CustomStringConvertible {
  public let text: String

  /// Nil unless `text` is a UUID.
  public init?(_ text: String) {
    let groups = text.split(separator: "-", omittingEmptySubsequences: false)
    guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12],
      groups.allSatisfy({ $0.allSatisfy { $0.isASCII && $0.isHexDigit } })
    else { return nil }
    self.text = text.lowercased()
  }

  public var description: String { text }
}

/// A request as the pending list tells of it. Nothing in it is secret and nothing is verified.
public struct PendingMobileAuthRequest: Sendable, Equatable {
  public var transaction: TransactionID
  public var server: TokenServerID
  public var account: AccountID
  /// Milliseconds since 1970 by the server's clock.
  public var sentAtMilliseconds: Int64
  /// The same by this token's, of one that was brought to it: whoever sends those may say any time. Nil if the server
  /// lists it.
  public var receivedAtMilliseconds: Int64?
  public var timeToLive: Duration
  /// What the portal says, at most 155 characters.
  public var message: String?
  /// Whatever else the notification carried.
  public var userInfo: [String: String]
  /// When it ends, on this token's monotonic clock, counted from the moment the list was asked for.
  public var deadline: Moment
  /// Nil if it can be put to a person.
  public var withheld: Withholding?

  public init(
    transaction: TransactionID, server: TokenServerID, account: AccountID, sentAtMilliseconds: Int64,
    receivedAtMilliseconds: Int64? = nil, timeToLive: Duration, message: String?, userInfo: [String: String] = [:],
    deadline: Moment, withheld: Withholding? = nil
  ) {
    self.transaction = transaction
    self.server = server
    self.account = account
    self.sentAtMilliseconds = sentAtMilliseconds
    self.receivedAtMilliseconds = receivedAtMilliseconds
    self.timeToLive = timeToLive
    self.message = message
    self.userInfo = userInfo
    self.deadline = deadline
    self.withheld = withheld
  }

  /// The order of a list that its server does not send in order: newest first; equal times in the order of the ids. What
  /// was brought to this token has come when it came, whatever its sender says.
  public static func newestFirst(_ one: Self, _ other: Self) -> Bool {
    (other.orderedAt, one.transaction.text) < (one.orderedAt, other.transaction.text)
  }

  private var orderedAt: Int64 { receivedAtMilliseconds ?? sentAtMilliseconds }

  /// The next step: the adapter fetched, decrypted and verified the request and found these contents.
  /// - Throws: `.notHandleable` if the contents are about another request or account.
  public func opened(_ contents: VerifiedContents) throws(TokenServerFault) -> MobileAuthRequest {
    guard contents.transaction == transaction else {
      throw .notHandleable("the message is about \(contents.transaction)")
    }
    guard contents.profileMatches else { throw .notHandleable("the message is for another profile or device") }
    return MobileAuthRequest(pending: self, contents: contents)
  }
}

/// What an adapter claims after it verified signer, recipient and integrity. Ends inside `MobileAuthRequest`.
public struct VerifiedContents: Sendable, Equatable {
  public var transaction: TransactionID
  /// Client and profile inside the message are those it was fetched for.
  public var profileMatches: Bool
  /// The type's name as the administrator chose it.
  public var type: String
  public var message: String?
  public var challenge: Challenge
  /// Opaque to the domain: what the adapter needs to answer exactly this message (nonce, digest).
  public var answerContext: [UInt8]

  public init(
    transaction: TransactionID, profileMatches: Bool, type: String, message: String?, challenge: Challenge,
    answerContext: [UInt8]
  ) {
    self.transaction = transaction
    self.profileMatches = profileMatches
    self.type = type
    self.message = message
    self.challenge = challenge
    self.answerContext = answerContext
  }
}

/// A request whose contents are verified: the only kind that is put to a person.
public struct MobileAuthRequest: Sendable, Equatable {
  public let pending: PendingMobileAuthRequest
  public let contents: VerifiedContents

  fileprivate init(pending: PendingMobileAuthRequest, contents: VerifiedContents) {
    self.pending = pending
    self.contents = contents
  }

  /// The next step: a person answered the challenge, by a gesture or by typing what it wants. A hold may choose, too:
  /// where nothing can be typed it belongs to the option that was shown.
  /// - Returns: nil if this does not answer it: nothing accepts a request that wants the PIN but the PIN.
  func answered(
    by gesture: Gesture, typing pin: PIN? = nil, choosing option: String? = nil, after delay: Duration,
    idempotencyKey: String
  ) -> ChallengeResponse? {
    if gesture.decision == .accept {
      switch contents.challenge {
      case .confirmation: guard gesture.kind == .hold else { return nil }
      case .pin(let challenge): guard gesture.kind == .enter, pin?.count == challenge.length else { return nil }
      case .choice(let challenge):
        guard gesture.kind == .enter || challenge.pin == nil, let option, challenge.options.contains(option),
          pin?.count == challenge.pin?.length
        else { return nil }
      case .impossible: return nil
      }
    }
    return ChallengeResponse(
      request: self, gesture: gesture, pin: pin, choice: gesture.decision == .accept ? option : nil,
      answeredAfter: delay, idempotencyKey: idempotencyKey)
  }
}

/// A person's answer to a verified request. It may hold a PIN, so it lives only until it is sealed.
public struct ChallengeResponse: Sendable, Equatable {
  public let request: MobileAuthRequest
  public let gesture: Gesture
  /// With an accept of a request that wants it, and only then.
  public let pin: PIN?
  /// The option chosen, with an accept of a request that wants one.
  public let choice: String?
  /// From the announcement to the end of the gesture.
  public let answeredAfter: Duration
  /// UUID; the same for every repeat of this answer.
  public let idempotencyKey: String

  public var decision: Decision { gesture.decision }

  fileprivate init(
    request: MobileAuthRequest, gesture: Gesture, pin: PIN?, choice: String?, answeredAfter: Duration,
    idempotencyKey: String
  ) {
    self.request = request
    self.gesture = gesture
    self.pin = pin
    self.choice = choice
    self.answeredAfter = answeredAfter
    self.idempotencyKey = idempotencyKey
  }

  /// The next step: the adapter made the bytes that will leave, once for all repeats; no PIN is needed any more.
  /// - Parameter isRepeatedAfterCut: the server tells nobody what became of an answer, so that the same bytes are sent
  ///   again after a cut.
  public func sealed(_ body: [UInt8], isRepeatedAfterCut: Bool = false) -> SealedResponse {
    SealedResponse(
      request: request, gesture: gesture, idempotencyKey: idempotencyKey, body: body,
      isRepeatedAfterCut: isRepeatedAfterCut)
  }
}

/// An answer ready to leave: signed, encrypted, and proved by the PIN where one was wanted. Kept in memory only, unless
/// it is repeated after a cut.
public struct SealedResponse: Sendable, Equatable {
  public let request: MobileAuthRequest
  public let gesture: Gesture
  public let idempotencyKey: String
  /// The adapter's own bytes.
  public let body: [UInt8]
  public let isRepeatedAfterCut: Bool

  public var decision: Decision { gesture.decision }

  fileprivate init(
    request: MobileAuthRequest, gesture: Gesture, idempotencyKey: String, body: [UInt8], isRepeatedAfterCut: Bool
  ) {
    self.request = request
    self.gesture = gesture
    self.idempotencyKey = idempotencyKey
    self.body = body
    self.isRepeatedAfterCut = isRepeatedAfterCut
  }

  /// The last step: the server's word on this answer.
  /// - Parameters:
  ///   - receipt: the server's reference.
  ///   - code: what the person has to type into the portal now.
  /// - Throws: `.answerInvalid` if the server says anything but what was answered.
  public func verdict(_ state: RemoteState, receipt: String, code: PortalCode? = nil) throws(TokenServerFault)
    -> Verdict
  {
    switch (decision, state) {
    case (.accept, .authenticated), (.deny, .rejected): Verdict(decision: decision, receipt: receipt, code: code)
    default: throw .answerInvalid("the server calls the answer \(state.rawValue)")
    }
  }
}

/// The server confirmed exactly what the person decided.
public struct Verdict: Sendable, Equatable {
  public let decision: Decision
  public let receipt: String
  /// The login is not finished until the person has typed it into the portal.
  public let code: PortalCode?

  fileprivate init(decision: Decision, receipt: String, code: PortalCode?) {
    self.decision = decision
    self.receipt = receipt
    self.code = code
  }
}

/// Where a request stands on the server.
public enum RemoteState: String, Sendable { case open, authenticated, rejected, failed, expired, cancelled, superseded }
