// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Logging
package import ReferenceProtocol

/// Stores result, reply and callback durably before the device receives the response.
extension AnswerService {
  /// The number of invalid answers that ends a request. A single invalid answer does not end it.
  package static let badAnswersAllowed = 5

  private enum Outcome: Sendable {
    case recorded(StoredReply, Effects)
    /// A concurrent request with the same key was stored first.
    case known(StoredReply)
    case tooLate(RequestState)
  }

  package func record(
    _ verificationResult: Verification, of arrival: ArrivedAnswer, for request: AnsweredRequest
  ) async throws -> StoredReply {
    let transaction = request.transaction
    let transactionEnd = try await end(verificationResult, of: arrival, for: request)
    let reply = reply(to: arrival, verificationResult, transactionEnd)
    let outcome = try await store.write { [notMeHold] records in
      if let transactionEnd, transactionEnd.denial == .notMe, notMeHold > .zero, try records.isOpen(transaction.id) {
        try records.hold(transaction.userID, until: arrival.arrivedAt + notMeHold)
      }
      return try Self.record(reply, verificationResult, transactionEnd, of: arrival, for: transaction, in: records)
    }
    switch outcome {
    case .recorded(let reply, let effects):
      announcer.announce(effects)
      announcer.log.info("transaction \(transaction.id): \(describe(verificationResult))")
      return reply
    case .known(let reply): return try reply.repeated(for: arrival.hash)
    case .tooLate(let state): throw DeviceAPIError(tooLate: state)
    }
  }

  private static func record(
    _ reply: StoredReply, _ verificationResult: Verification, _ transactionEnd: TransactionEnd?,
    of arrival: ArrivedAnswer, for transaction: Transaction, in records: any ServerRecords
  ) throws -> Outcome {
    if let known = try records.storedReply(arrival.key, of: transaction.clientID) { return .known(known) }
    var effects: Effects?
    switch verificationResult {
    case .ending(let ending, _):
      effects = try records.end(transaction, ending, transactionEnd: transactionEnd, now: arrival.arrivedAt)
    case .invalid:
      let count = try records.countBadAnswer(to: transaction.id)
      if count > 0 {
        effects =
          count < badAnswersAllowed ? Effects() : try records.end(transaction, .invalidAnswers, now: arrival.arrivedAt)
      }
    }
    guard let effects else {
      return .tooLate(try records.transaction(transaction.id)?.state(at: arrival.arrivedAt) ?? .expired)
    }
    try records.insert(reply, key: arrival.key, clientID: transaction.clientID, now: arrival.arrivedAt)
    return .recorded(reply, effects)
  }

  private func reply(
    to arrival: ArrivedAnswer, _ verificationResult: Verification, _ transactionEnd: TransactionEnd?
  ) -> StoredReply {
    switch verificationResult {
    case .ending(let ending, _): StoredReply(to: arrival, ending, transactionEnd)
    case .invalid(let why):
      StoredReply(Problem(.answerInvalid, issuer: origin.issuer, detail: why), to: arrival.hash)
    }
  }

  /// Records an approval whose PIN proof must still be verified.
  package func record(
    _ proof: [UInt8], of claim: ApprovalClaim, in arrival: ArrivedAnswer, for request: AnsweredRequest
  ) async throws -> StoredReply {
    let transaction = request.transaction
    let attempt = PINAttempt(
      clientID: transaction.clientID, profileID: transaction.profileID, key: arrival.key, requestHash: arrival.hash)
    let issuer = origin.issuer
    // Signed before the result is known, because signing must not happen inside a database transaction.
    let transactionEnd = try await end(.ending(.accepted, nil), of: arrival, for: request)
    let accepted = StoredReply(to: arrival, .accepted, transactionEnd)
    let reply: StoredReply?
    do {
      reply = try await pins.verify(attempt, isRight: { claim.isProved(by: proof, $0) }) { records, outcome in
        try Self.consequences(
          of: outcome, transactionEnd, accepted, on: transaction, by: arrival, issuer: issuer, in: records)
      }
    } catch let refusal as PINAttemptVerifier.VerificationError { throw DeviceAPIError(refusal) }
    if let reply {
      let outcome = reply.isSuccess ? RequestState.authenticated.rawValue : "wrong PIN"
      announcer.log.info("transaction \(transaction.id): \(outcome)")
      return await revocations.explained(reply, attempt)
    }
    let ended = try await store.transaction(transaction.id, of: arrival.clientID)
    throw DeviceAPIError(tooLate: ended.state(at: arrival.arrivedAt))
  }

  /// - Parameter accepted: the reply to a right PIN.
  private static func consequences(
    of outcome: PINVerificationOutcome, _ transactionEnd: TransactionEnd?, _ accepted: StoredReply,
    on transaction: Transaction, by arrival: ArrivedAnswer, issuer: String, in records: any ServerRecords
  ) throws -> AttemptConsequences {
    let nonce = outcome == .right ? transaction.nonce : Random.bytes(32).base64URL
    let isOpen = try records.countPINAttempt(for: transaction.id, nonce: nonce)
    switch outcome {
    case .right:
      guard isOpen else { return .init() }
      let effects = try records.end(transaction, .accepted, transactionEnd: transactionEnd, now: arrival.arrivedAt)
      return .init(reply: accepted, effects: effects ?? Effects())
    case .wrong:
      // The request was canceled or replaced meanwhile; the PIN attempt still counts.
      guard isOpen else { return .init() }
      return .init(reply: Problem(outcome, issuer: issuer, nonce: nonce).map { StoredReply($0, to: arrival.hash) })
    case .limitReached:
      return .init(
        reply: Problem(outcome, issuer: issuer).map { StoredReply($0, to: arrival.hash) },
        effects: try records.end(transaction, .invalidAnswers, now: arrival.arrivedAt) ?? Effects())
    }
  }

  private func describe(_ verificationResult: Verification) -> String {
    switch verificationResult {
    case .ending(let ending, let denial): ending.state.rawValue + (denial.map { " (\($0.rawValue))" } ?? "")
    case .invalid(let why): "invalid answer: \(why)"
    }
  }
}

extension StoredReply {
  /// The reply to an answer that ends its request.
  init(
    to arrival: ArrivedAnswer, _ ending: TransactionOutcome, _ transactionEnd: TransactionEnd?,
    customInfo: CustomInfo? = nil
  ) {
    let status = RequestStatus(
      state: ending.state, receipt: transactionEnd?.receipt, idempotencyKey: arrival.key,
      sealedReceipt: transactionEnd?.sealed, customInfo: customInfo)
    self.init(requestHash: arrival.hash, status: 200, body: JSON.encode(status))
  }
}
