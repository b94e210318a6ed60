// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import ReferenceProtocol

/// Verifies that a decrypted answer, whose signature is already verified, belongs to exactly this transaction.
package enum AnswerVerifier {
  package struct AnswerError: Error, Equatable {
    package let why: String
  }

  package enum Reading: Sendable, Equatable {
    /// An ending; for a denial, with the reason that the device signed.
    case ending(TransactionOutcome, DenialReason?)
    /// An approval, valid only if the PIN proof is valid.
    case proof([UInt8], of: ApprovalClaim)
  }

  package static func read(
    _ plaintext: [UInt8], for transaction: Transaction, issuer: String
  ) throws(AnswerError) -> Reading {
    let answer: ApprovalAnswer
    do { answer = try JSON.decode(ApprovalAnswer.self, from: plaintext) } catch { throw AnswerError(why: "\(error)") }
    func require(_ holds: Bool, _ what: String) throws(AnswerError) { if !holds { throw AnswerError(why: what) } }
    try require(answer.v == 1, "v is not 1")
    try require(answer.aud == issuer, "aud is another server")
    try require(answer.clientID == transaction.clientID.text, "client_id is another device")
    try require(answer.profileID == transaction.profileID.text, "profile_id is another profile")
    try require(answer.transactionID == transaction.id, "transaction_id is another request")
    let requestSHA256 = bytes(base64URL: answer.requestSHA256) ?? []
    try require(transaction.wasIssued(requestSHA256), "request_sha256 is not the request that was sent")
    try require(
      constantTimeEqual(Array(answer.nonce.utf8), Array(transaction.nonce.utf8)), "nonce is not the request's")
    guard answer.decision == .accept else { return .ending(.denied, answer.reason ?? .declined) }
    try require(answer.methodUsed == transaction.method, "method_used is not the request's method")
    guard transaction.method == .pushWithPIN else { return .ending(.accepted, nil) }
    try require(answer.attempt == transaction.pinAttempts + 1, "attempt is not the next one")
    guard let proof = answer.pinProof.flatMap({ bytes(base64URL: $0) }), proof.count == 64,
      let nonce = bytes(base64URL: transaction.nonce)
    else { throw AnswerError(why: "pin_proof is not a signature") }
    return .proof(
      proof, of: ApprovalClaim(nonce: nonce, requestSHA256: requestSHA256, decision: answer.decision))
  }
}
