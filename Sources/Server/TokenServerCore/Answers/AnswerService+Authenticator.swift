// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Logging
import ReferenceProtocol

/// Approvals with an authenticator other than the PIN.
extension AnswerService {
  /// Records an approval whose authenticator proof must still be verified.
  func record(
    _ proof: [UInt8], of claim: AuthenticatorClaim, in arrival: ArrivedAnswer, for request: AnsweredRequest
  ) async throws -> StoredReply {
    let transaction = request.transaction
    let name = transaction.name(of: claim.authenticator)
    let attempt = AuthenticatorAttempt(name: name, key: arrival.key, requestHash: arrival.hash)
    let issuer = origin.issuer
    // Signed before the result is known, because signing must not happen inside a database transaction.
    let transactionEnd = try await end(.ending(.accepted, nil), of: arrival, for: request)
    let result: (outcome: AuthenticatorOutcome, reply: StoredReply?)
    do {
      result = try await authenticators.verify(
        attempt, isProved: { claim.isProved(by: proof, $0) }, call: call(name, claim, request)
      ) { records, outcome in
        try Self.consequences(
          of: outcome, with: name.id, transactionEnd, on: transaction, by: arrival, issuer: issuer, in: records)
      }
    } catch let error as AuthenticatorVerifier.VerificationError { throw DeviceAPIError(error) }
    if case .notRun(let info) = result.outcome { throw DeviceAPIError(notRun: info) }
    if let reply = result.reply { return reply }
    let ended = try await store.transaction(transaction.id, of: arrival.clientID)
    throw DeviceAPIError(tooLate: ended.state(at: arrival.arrivedAt))
  }

  private func call(
    _ name: AuthenticatorName, _ claim: AuthenticatorClaim, _ request: AnsweredRequest
  ) -> ScriptCall {
    let transaction = request.transaction
    var call = ScriptCall(
      .authenticate, for: .push, name, of: transaction.userID, issuer: origin.issuer, data: claim.data,
      nonce: claim.nonce.base64URL)
    call.transactionID = transaction.id
    call.type = transaction.type
    call.decision = claim.decision.rawValue
    call.requestSHA256 = claim.requestSHA256.base64URL
    call.messageSHA256 = AuthenticatorChallenge.digest(ofMessage: request.content.message)
    call.setChallenge()
    return call
  }

  private static func consequences(
    of outcome: AuthenticatorOutcome, with authenticator: String, _ transactionEnd: TransactionEnd?,
    on transaction: Transaction, by arrival: ArrivedAnswer, issuer: String, in records: any ServerRecords
  ) throws -> AttemptConsequences {
    if case .notRun = outcome { return .init() }
    if case .noResult = outcome {
      return .init(reply: Problem(outcome, issuer: issuer).map { StoredReply($0, to: arrival.hash) })
    }
    if case .right(let info) = outcome {
      guard try records.countAttempt(with: authenticator, for: transaction, nonce: transaction.nonce) else {
        return .init()
      }
      let effects = try records.end(transaction, .accepted, transactionEnd: transactionEnd, now: arrival.arrivedAt)
      return .init(
        reply: StoredReply(to: arrival, .accepted, transactionEnd, customInfo: info), effects: effects ?? Effects())
    }
    let nonce = Random.bytes(32).base64URL
    // The request was canceled or replaced meanwhile; the attempt still counts.
    guard try records.countAttempt(with: authenticator, for: transaction, nonce: nonce) else { return .init() }
    let profile = try records.profile(transaction.profileID, on: transaction.clientID)
    let canUsePIN = transaction.hasFallback && profile?.hasPIN == true
    var isRevoked = false
    if case .revoked = outcome { isRevoked = true }
    let isOver = try isRevoked && !canUsePIN && !records.hasRegistered(oneOf: transaction, without: authenticator)
    var problem = Problem(outcome, issuer: issuer, nonce: isOver ? nil : nonce, canUsePIN: canUsePIN)
    if isOver { problem?.state = .failed }
    let effects = isOver ? try records.end(transaction, .invalidAnswers, now: arrival.arrivedAt) : nil
    return .init(reply: problem.map { StoredReply($0, to: arrival.hash) }, effects: effects ?? Effects())
  }
}

extension Transaction {
  /// An authenticator of the request's profile.
  func name(of authenticator: String) -> AuthenticatorName {
    AuthenticatorName(profile: ProfileName(clientID: clientID, id: profileID), id: authenticator)
  }
}

extension ServerRecords {
  fileprivate func countAttempt(
    with authenticator: String, for transaction: Transaction, nonce: String
  ) throws -> Bool {
    let method = transaction.authenticators.first { $0.authenticator == authenticator }?.method ?? transaction.method
    return try countAuthenticatorAttempt(for: transaction.id, nonce: nonce, method: method)
  }
}
