// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The server's identifier of one authentication request: a UUID in lower case.
package struct TransactionID: Hashable, Sendable, CustomStringConvertible {
  package let text: String

  /// Creates the identifier; nil unless `text` is a UUID.
  package init?(_ text: String) {
    guard text.isUUID else { return nil }
    self.text = text.lowercased()
  }

  package var description: String { text }
}

extension StringProtocol {
  /// Whether this is a UUID (RFC 9562 §4) in letters of either case.
  package var isUUID: Bool {
    let groups = split(separator: "-", omittingEmptySubsequences: false)
    return groups.map(\.utf8.count) == [8, 4, 4, 4, 12]
      && groups.allSatisfy { $0.allSatisfy { $0.isASCII && $0.isHexDigit } }
  }
}

/// A request as listed by the server. It contains no secret, and its contents are not verified.
package struct PendingMobileAuthRequest: Sendable, Equatable {
  package var transaction: TransactionID
  package var server: TokenServerID
  package var account: AccountID
  /// Milliseconds since 1970, by the server's clock.
  package var sentAtMilliseconds: Int64
  /// When a push-delivered request arrived, in milliseconds since 1970 by this token's wall clock: the time that a
  /// sender claims is not used for the order. Nil for a listed request.
  package var receivedAtMilliseconds: Int64?
  package var timeToLive: Duration
  /// The portal's text, at most 155 characters.
  package var message: String?
  package var summary: RequestSummary
  /// The end of the request on this token's monotonic clock, counted from when the list was requested.
  package var deadline: MonotonicInstant
  /// Nil if the request can be shown to the user.
  package var blockedBy: BlockedRequestInfo?

  package init(
    transaction: TransactionID, server: TokenServerID, account: AccountID, sentAtMilliseconds: Int64,
    receivedAtMilliseconds: Int64? = nil, timeToLive: Duration, message: String?,
    summary: RequestSummary = RequestSummary(),
    deadline: MonotonicInstant, blockedBy: BlockedRequestInfo? = nil
  ) {
    self.transaction = transaction
    self.server = server
    self.account = account
    self.sentAtMilliseconds = sentAtMilliseconds
    self.receivedAtMilliseconds = receivedAtMilliseconds
    self.timeToLive = timeToLive
    self.message = message
    self.summary = summary
    self.deadline = deadline
    self.blockedBy = blockedBy
  }

  /// The order for lists that the server does not sort: newest first, equal times by transaction ID. A push-delivered
  /// request counts from its arrival.
  package static func newestFirst(_ one: Self, _ other: Self) -> Bool {
    (other.orderedAt, one.transaction.text) < (one.orderedAt, other.transaction.text)
  }

  private var orderedAt: Int64 { receivedAtMilliseconds ?? sentAtMilliseconds }

  /// Combines the request with the contents that the adapter has fetched, decrypted and verified.
  /// - Throws: `.notHandleable` if the contents are about another request or account.
  package func opened(_ contents: VerifiedContents) throws(TokenServerError) -> MobileAuthRequest {
    guard contents.transaction == transaction else {
      throw .notHandleable("the message is about \(contents.transaction)")
    }
    guard contents.account == account else { throw .notHandleable("the message is for another profile or device") }
    return MobileAuthRequest(pending: self, contents: contents)
  }
}

/// The contents that an adapter returns after it has verified signer, recipient and integrity.
package struct VerifiedContents: Sendable, Equatable {
  package var transaction: TransactionID
  /// The account that the message names; nil if it names none of this token's accounts at the server.
  package var account: AccountID?
  /// For the audit chain: the name of the request type, at some servers with a description of the request.
  package var type: String
  /// The texts that the server signed; nil if it signs none.
  package var texts: VerifiedTexts?
  package var challenge: Challenge
  /// The digits that the user must type before the challenge, such as the amount; nil for none.
  package var readBack: EnteredDigits?
  /// Data of the adapter for the answer to exactly this message, such as a nonce or digest.
  package var answerContext: [UInt8]

  package init(
    transaction: TransactionID, account: AccountID?, type: String, texts: VerifiedTexts? = nil, challenge: Challenge,
    readBack: EnteredDigits? = nil, answerContext: [UInt8]
  ) {
    self.transaction = transaction
    self.account = account
    self.type = type
    self.texts = texts
    self.challenge = challenge
    self.readBack = readBack
    self.answerContext = answerContext
  }
}

/// A request with verified contents. Only such requests are shown to the user.
package struct MobileAuthRequest: Sendable, Equatable {
  package let pending: PendingMobileAuthRequest
  package let contents: VerifiedContents

  fileprivate init(pending: PendingMobileAuthRequest, contents: VerifiedContents) {
    self.pending = pending
    self.contents = contents
  }

  /// Creates the user's response from a gesture, typed digits or a choice. Without a keypad, a hold chooses the option
  /// shown last.
  /// - Parameters:
  ///   - authenticator: the identifier of the one that answers or cancels; may be nil if the challenge has only one.
  ///   - data: of this authenticator.
  ///   - readBack: what the user typed before.
  ///   - underlyingError: why an authenticator cancels.
  /// - Returns: nil if the input does not answer the challenge. A request that requires a PIN is approved only with a
  ///   PIN, and one with digits to type only after them.
  func answered(
    by gesture: Gesture, typing pin: PIN? = nil, with authenticator: String? = nil, data: AuthenticatorData? = nil,
    choosing option: String? = nil, readBack: EnteredDigits? = nil, underlyingError: String? = nil,
    after delay: Duration, idempotencyKey: String
  ) -> ChallengeResponse? {
    var source: AuthenticatorSource?
    if case .custom(let challenge) = contents.challenge, pin == nil {
      source = authenticator.map { challenge[$0] } ?? (challenge.sources.count == 1 ? challenge.sources.first : nil)
    }
    if gesture.decision == .accept {
      guard readBack == contents.readBack else { return nil }
      switch contents.challenge {
      case .confirmation: guard gesture.kind == .hold else { return nil }
      case .pin(let challenge): guard gesture.kind == .enter, pin?.count == challenge.length else { return nil }
      case .choice(let challenge):
        guard gesture.kind == .enter || challenge.pin == nil, let option, challenge.options.contains(option),
          pin?.count == challenge.pin?.length
        else { return nil }
      case .custom(let challenge):
        guard pin != nil || source != nil else { return nil }
        let isTyped = pin != nil || source?.input == .keypadCode
        guard gesture.kind == (isTyped ? .enter : .authenticator), (pin == nil) != (data == nil),
          pin == nil || pin?.count == challenge.fallback?.length
        else { return nil }
      case .impossible: return nil
      }
    }
    return ChallengeResponse(
      request: self, gesture: gesture, pin: pin, authenticator: source?.authenticator, data: data,
      choice: gesture.decision == .accept ? option : nil,
      readBack: gesture.decision == .accept ? readBack : nil, underlyingError: underlyingError, answeredAfter: delay,
      idempotencyKey: idempotencyKey)
  }
}

/// The user's response to a verified request. It can contain a PIN, so it exists only until it is sealed.
package struct ChallengeResponse: Sendable, Equatable {
  package let request: MobileAuthRequest
  package let gesture: Gesture
  /// Set only for an approval of a request that requires a PIN.
  package let pin: PIN?
  /// The identifier of the authenticator that answers or cancels, of a request with authenticators other than the PIN.
  package let authenticator: String?
  /// Its data; set only for an approval with it.
  package let data: AuthenticatorData?
  /// The chosen option, for an approval of a request with a choice.
  package let choice: String?
  /// Why an authenticator canceled; nil for other answers.
  package let underlyingError: String?
  /// The digits that the user typed, for an approval of a request that has some.
  package let readBack: EnteredDigits?
  /// From the announcement to the end of the gesture.
  package let answeredAfter: Duration
  /// A UUID; the same for every attempt to send this answer.
  package let idempotencyKey: String

  package var decision: Decision { gesture.decision }

  fileprivate init(
    request: MobileAuthRequest, gesture: Gesture, pin: PIN?, authenticator: String?, data: AuthenticatorData?,
    choice: String?, readBack: EnteredDigits?, underlyingError: String?, answeredAfter: Duration, idempotencyKey: String
  ) {
    self.request = request
    self.gesture = gesture
    self.pin = pin
    self.authenticator = authenticator
    self.data = data
    self.choice = choice
    self.underlyingError = underlyingError
    self.readBack = readBack
    self.answeredAfter = answeredAfter
    self.idempotencyKey = idempotencyKey
  }

  /// Combines the response with the bytes that the adapter has made of it. All attempts send the same bytes; the PIN is
  /// no longer needed.
  /// - Parameter isResentAfterRestart: whether the server cannot report the outcome of an answer, so that the same
  ///   bytes are sent again after a restart.
  package func sealed(_ body: [UInt8], isResentAfterRestart: Bool = false) -> SealedResponse {
    SealedResponse(
      request: request, gesture: gesture, idempotencyKey: idempotencyKey, body: body, hasPIN: pin != nil,
      source: authenticator, underlyingError: underlyingError, isResentAfterRestart: isResentAfterRestart)
  }
}

/// An answer ready to send: signed, encrypted, and with the proof of the PIN if one was required. Kept in memory only,
/// unless `isResentAfterRestart`.
package struct SealedResponse: Sendable, Equatable {
  package let request: MobileAuthRequest
  package let gesture: Gesture
  package let idempotencyKey: String
  /// Encoded by the adapter.
  package let body: [UInt8]
  /// Whether the PIN approves the request.
  package let hasPIN: Bool
  /// As `ChallengeResponse.authenticator`.
  package let source: String?
  /// Why an authenticator canceled; nil for other answers.
  package let underlyingError: String?
  package let isResentAfterRestart: Bool

  package var decision: Decision { gesture.decision }

  /// The identifier of the authenticator that approves the request; nil for none.
  var authenticator: String? {
    guard decision == .accept else { return nil }
    return hasPIN ? Authenticator.pinIdentifier : source
  }

  fileprivate init(
    request: MobileAuthRequest, gesture: Gesture, idempotencyKey: String, body: [UInt8], hasPIN: Bool,
    source: String?, underlyingError: String?, isResentAfterRestart: Bool
  ) {
    self.request = request
    self.gesture = gesture
    self.idempotencyKey = idempotencyKey
    self.body = body
    self.hasPIN = hasPIN
    self.source = source
    self.underlyingError = underlyingError
    self.isResentAfterRestart = isResentAfterRestart
  }

  /// Checks the server's confirmation of this answer.
  /// - Parameters:
  ///   - receipt: the server's reference.
  ///   - code: a code that the user must now type into the portal.
  ///   - info: the result of the server's script.
  /// - Throws: `.answerInvalid` if the server confirms another state than the answer's.
  package func verdict(
    _ state: RemoteState, receipt: String, code: PortalCode? = nil, info: AuthenticatorInfo? = nil
  ) throws(TokenServerError) -> Verdict {
    switch (decision, state) {
    case (.accept, .authenticated), (.deny, .rejected):
      Verdict(decision: decision, receipt: receipt, code: code, info: info)
    default: throw .answerInvalid("the server calls the answer \(state.rawValue)")
    }
  }
}

/// The server's confirmation of exactly the user's decision.
package struct Verdict: Sendable, Equatable {
  package let decision: Decision
  package let receipt: String
  /// A code that the user must type into the portal to complete the login; otherwise nil.
  package let code: PortalCode?
  /// The result of the server's script, for an approval with a custom authenticator.
  package let info: AuthenticatorInfo?

  fileprivate init(decision: Decision, receipt: String, code: PortalCode?, info: AuthenticatorInfo?) {
    self.decision = decision
    self.receipt = receipt
    self.code = code
    self.info = info
  }
}

/// The state of a request at the server.
package enum RemoteState: String, Sendable {
  case open, authenticated, rejected, failed, expired, canceled = "cancelled", superseded
}
