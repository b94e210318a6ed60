// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Logging
package import ReferenceProtocol

/// Stores result, verdict and callback durably before the device receives the response.
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
    _ verificationResult: Verification, of arrival: ArrivedAnswer, for transaction: Transaction
  ) async throws -> StoredReply {
    let issuer = origin.issuer
    let settlement = try await end(verificationResult, of: arrival, for: transaction)
    let outcome = try await store.write { [notMeHoldMs] records in
      if let settlement, settlement.denial == .notMe, notMeHoldMs > 0, try records.isOpen(transaction.id) {
        try records.hold(transaction.userID, untilMs: arrival.atMs + notMeHoldMs)
      }
      return try Self.record(
        verificationResult, settlement, of: arrival, for: transaction, issuer: issuer, in: records)
    }
    switch outcome {
    case .recorded(let verdict, let effects):
      announcer.announce(effects)
      announcer.log.info("transaction \(transaction.id): \(describe(verificationResult))")
      return verdict
    case .known(let verdict): return try verdict.repeated(for: arrival.hash)
    case .tooLate(let state): throw DeviceAPIError(tooLate: state)
    }
  }

  private static func record(
    _ verificationResult: Verification, _ settlement: TransactionEnd?, of arrival: ArrivedAnswer,
    for transaction: Transaction,
    issuer: String, in records: any ServerRecords
  ) throws -> Outcome {
    if let known = try records.verdict(arrival.key, of: transaction.clientID) { return .known(known) }
    var effects: Effects?
    let verdict: StoredReply
    switch verificationResult {
    case .ending(let ending, _):
      (verdict, effects) = try end(transaction, ending, settlement, by: arrival, in: records)
    case .invalid(let why):
      let count = try records.countBadAnswer(to: transaction.id)
      if count > 0 {
        effects =
          count < badAnswersAllowed ? Effects() : try records.end(transaction, .invalidAnswers, nowMs: arrival.atMs)
      }
      verdict = StoredReply(Problem(.answerInvalid, issuer: issuer, detail: why), to: arrival.hash)
    }
    guard let effects else {
      return .tooLate(try records.transaction(transaction.id)?.state(at: arrival.atMs) ?? .expired)
    }
    try records.insert(verdict, key: arrival.key, clientID: transaction.clientID, nowMs: arrival.atMs)
    return .recorded(verdict, effects)
  }

  /// - Returns: no effects if the transaction had already ended.
  static func end(
    _ transaction: Transaction, _ ending: TransactionOutcome, _ settlement: TransactionEnd?, by arrival: ArrivedAnswer,
    customInfo: CustomInfo? = nil, in records: any ServerRecords
  ) throws -> (StoredReply, Effects?) {
    let effects = try records.end(transaction, ending, settlement: settlement, nowMs: arrival.atMs)
    let status = RequestStatus(
      state: ending.state, receipt: settlement?.receipt, idempotencyKey: arrival.key, sealedReceipt: settlement?.sealed,
      customInfo: customInfo)
    return (StoredReply(requestHash: arrival.hash, status: 200, body: JSON.encode(status)), effects)
  }

  /// Records an approval whose PIN proof must still be verified.
  package func record(
    _ proof: [UInt8], of claim: ApprovalClaim, in arrival: ArrivedAnswer, for transaction: Transaction
  ) async throws -> StoredReply {
    let attempt = PINAttempt(
      clientID: transaction.clientID, profileID: transaction.profileID, key: arrival.key, requestHash: arrival.hash)
    let issuer = origin.issuer
    // Signed before the result is known, because signing must not happen inside a database transaction.
    let settlement = try await end(.ending(.accepted, nil), of: arrival, for: transaction)
    let verdict: StoredReply?
    do {
      verdict = try await pins.verify(attempt, isRight: { claim.isProved(by: proof, $0) }) { records, finding in
        try Self.rule(finding, settlement, on: transaction, by: arrival, issuer: issuer, in: records)
      }
    } catch let refusal as PINVerifier.VerificationError { throw DeviceAPIError(refusal) }
    if let verdict {
      let outcome = verdict.isSuccess ? RequestState.authenticated.rawValue : "wrong PIN"
      announcer.log.info("transaction \(transaction.id): \(outcome)")
      return await revocations.explained(verdict, attempt)
    }
    let ended = try await store.transaction(transaction.id, of: arrival.clientID)
    throw DeviceAPIError(tooLate: ended.state(at: arrival.atMs))
  }

  private static func rule(
    _ finding: PINVerificationOutcome, _ settlement: TransactionEnd?, on transaction: Transaction,
    by arrival: ArrivedAnswer,
    issuer: String, in records: any ServerRecords
  ) throws -> PINVerifier.Verification {
    let nonce = finding == .right ? transaction.nonce : Random.bytes(32).base64URL
    let isOpen = try records.countPINAttempt(for: transaction.id, nonce: nonce)
    switch finding {
    case .right:
      guard isOpen else { return .init() }
      let (verdict, effects) = try end(transaction, .accepted, settlement, by: arrival, in: records)
      return .init(verdict: verdict, effects: effects ?? Effects())
    case .wrong:
      // The request was canceled or replaced meanwhile; the PIN attempt still counts.
      guard isOpen else { return .init() }
      return .init(verdict: Problem(finding, issuer: issuer, nonce: nonce).map { StoredReply($0, to: arrival.hash) })
    case .limitReached:
      return .init(
        verdict: Problem(finding, issuer: issuer).map { StoredReply($0, to: arrival.hash) },
        effects: try records.end(transaction, .invalidAnswers, nowMs: arrival.atMs) ?? Effects())
    }
  }

  private func describe(_ verificationResult: Verification) -> String {
    switch verificationResult {
    case .ending(let ending, let denial): ending.state.rawValue + (denial.map { " (\($0.rawValue))" } ?? "")
    case .invalid(let why): "invalid answer: \(why)"
    }
  }
}
