// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import Testing

@testable import TokenServerCore

/// The result table: state, reason and callback of each ending.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct EndingTests {
  @Test(
    "Table",
    arguments: [
      (TransactionOutcome.accepted, RequestState.authenticated, nil, true, DeviceEvent.ClosingReason.answered),
      (.denied, .rejected, .notAccepted, true, .answered),
      (.invalidAnswers, .failed, .invalidAnswer, true, .answered),
      (.enrollmentRemoved, .failed, .invalidRequest, true, .revoked),
      (.notDelivered, .failed, .failedToSend, true, .canceled),
      (.expired, .expired, nil, false, .expired),
      (.canceled, .canceled, nil, false, .canceled),
      (.superseded, .superseded, nil, false, .superseded),
    ] as [(TransactionOutcome, RequestState, NotAuthenticatedReason?, Bool, DeviceEvent.ClosingReason)])
  func table(
    ending: TransactionOutcome, state: RequestState, reason: NotAuthenticatedReason?, callsBack: Bool,
    closing: DeviceEvent.ClosingReason
  ) {
    #expect(ending.state == state)
    #expect(ending.reason(callbackOnExpiry: false) == reason)
    #expect(ending.callsBack(callbackOnExpiry: false) == callsBack)
    #expect(ending.closingReason == closing)
  }

  @Test("Only portals that asked are notified of the expiry") func onlyPortalsThatAskedAreNotifiedOfTheExpiry() {
    #expect(TransactionOutcome.expired.reason(callbackOnExpiry: true) == .expired)
    #expect(TransactionOutcome.expired.callsBack(callbackOnExpiry: true))
    #expect(!TransactionOutcome.canceled.callsBack(callbackOnExpiry: true))
  }

  @Test("Expiry counts from its moment") func expiryCountsFromItsMoment() {
    let transaction = Transaction.sample()
    #expect(transaction.state(at: transaction.expiresAt - .milliseconds(1)) == .open)
    #expect(transaction.state(at: transaction.expiresAt) == .expired)
    #expect(transaction.status(at: Timestamp(59_999)).expiresInMs == 1)
    #expect(transaction.status(at: Timestamp(60_000)).expiresInMs == nil)
  }
}

/// An answer must match its request exactly.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AnswerVerifierTests {
  private static func answer(
    to transaction: Transaction, _ decision: ApprovalAnswer.Decision, _ reason: DenialReason? = nil
  ) -> ApprovalAnswer {
    ApprovalAnswer(
      aud: "https://a", clientID: transaction.clientID.text, profileID: transaction.profileID.text,
      transactionID: transaction.id, requestSHA256: SHA256.hash(transaction.request).base64URL,
      nonce: transaction.nonce, attempt: 1, decision: decision, reason: reason, methodUsed: .push,
      gesture: .init(kind: .hold, heldMs: 800), answeredAfterMs: 1)
  }

  @Test("Good answers") func goodAnswers() throws {
    let transaction = Transaction.sample()
    let plaintext = JSON.encode(Self.answer(to: transaction, .accept))
    #expect(try AnswerVerifier.read(plaintext, for: transaction, transaction.content()) == .ending(.accepted, nil))
  }

  @Test("A refusal keeps the reason that was signed") func aRefusalKeepsTheReasonThatWasSigned() throws {
    let transaction = Transaction.sample()
    for (given, reason) in [(DenialReason?.none, DenialReason.declined), (.declined, .declined), (.notMe, .notMe)] {
      let plaintext = JSON.encode(Self.answer(to: transaction, .deny, given))
      #expect(try AnswerVerifier.read(plaintext, for: transaction, transaction.content()) == .ending(.denied, reason))
    }
  }

  typealias Change = @Sendable (inout ApprovalAnswer) -> Void

  static let changes: [(String, Change)] = [
    ("v", { $0.v = 2 }), ("aud", { $0.aud = "https://b" }), ("client_id", { $0.clientID = "x" }),
    ("profile_id", { $0.profileID = "x" }), ("transaction_id", { $0.transactionID = "x" }),
    ("request_sha256", { $0.requestSHA256 = SHA256.hash([]).base64URL }), ("nonce", { $0.nonce = "x" }),
    ("method_used", { $0.methodUsed = .pushWithPIN }),
  ]

  @Test("Any other member", arguments: changes.indices)
  func anyOtherMember(index: Int) {
    let (name, change) = Self.changes[index]
    let transaction = Transaction.sample()
    var answer = Self.answer(to: transaction, .accept)
    change(&answer)
    let refusal = #expect(throws: AnswerVerifier.AnswerError.self) {
      try AnswerVerifier.read(JSON.encode(answer), for: transaction, transaction.content())
    }
    #expect(refusal?.why.hasPrefix(name) == true)
  }

  @Test("Not JSON") func notJSON() {
    #expect(throws: AnswerVerifier.AnswerError.self) {
      try AnswerVerifier.read(Array("{".utf8), for: .sample(), Transaction.sample().content())
    }
  }
}

extension Transaction {
  /// Open from 0 to 60 s.
  static func sample(_ id: String = "t1", expiresAt: Timestamp = Timestamp(60_000), callbackOnExpiry: Bool = false)
    -> Transaction
  {
    let request = ApprovalRequest(
      iss: "https://a", clientID: "C1", profileID: "PROF01", transactionID: id, type: "login", method: .push,
      message: nil, pushMessage: "Log in?", nonce: "bm9uY2U", sentAtMs: 0, expiresInMs: 60_000)
    return Transaction(
      id: id, userID: UserID("alice"), clientID: ClientID("C1"), profileID: ProfileID("PROF01"), type: "login",
      method: .push, callbackURI: "https://portal/cb", message: "Log in?", nonce: "bm9uY2U",
      request: JSON.encode(request), callbackOnExpiry: callbackOnExpiry, createdAt: Timestamp(0), expiresAt: expiresAt)
  }
}
