// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import ReferenceProtocol

/// Verifies that a decrypted answer, whose signature is already verified, belongs to exactly this transaction.
package enum AnswerVerifier {
  package struct AnswerError: Error, Equatable {
    package let why: String
  }

  package enum Reading: Sendable, Equatable {
    /// An ending; for a denial, with the reason that the device signed, and the error of an authenticator behind it.
    case ending(TransactionOutcome, DenialReason?, underlyingError: String? = nil)
    /// An approval, valid only if the PIN proof is valid.
    case proof([UInt8], of: ApprovalClaim)
    /// An approval, valid only if the authenticator's proof is valid.
    case authenticatorProof([UInt8], of: AuthenticatorClaim)
  }

  /// - Parameter request: the content of the transaction's request.
  package static func read(
    _ plaintext: [UInt8], for transaction: Transaction, _ request: ApprovalRequest
  ) throws(AnswerError) -> Reading {
    let answer: ApprovalAnswer
    do { answer = try JSON.decode(ApprovalAnswer.self, from: plaintext) } catch { throw AnswerError(why: "\(error)") }
    func require(_ holds: Bool, _ what: String) throws(AnswerError) { if !holds { throw AnswerError(why: what) } }
    try require(answer.v == 1, "v is not 1")
    // The issuer name at the time of the request.
    try require(answer.aud == request.iss, "aud is another server")
    try require(answer.clientID == transaction.clientID.text, "client_id is another device")
    try require(answer.profileID == transaction.profileID.text, "profile_id is another profile")
    try require(answer.transactionID == transaction.id, "transaction_id is another request")
    let requestSHA256 = bytes(base64URL: answer.requestSHA256) ?? []
    try require(transaction.wasIssued(requestSHA256), "request_sha256 is not the request that was sent")
    try require(
      constantTimeEqual(Array(answer.nonce.utf8), Array(transaction.nonce.utf8)), "nonce is not the request's")
    guard answer.decision == .accept else {
      try require((answer.underlyingError ?? "").utf8.count <= 256, "underlying_error is longer than 256 bytes")
      return .ending(.denied, answer.reason ?? .declined, underlyingError: answer.underlyingError)
    }
    let isFallback = transaction.hasFallback && answer.methodUsed == .pushWithPIN
    let used = isFallback ? nil : request.authenticators.first { $0.authenticator == answer.authenticator }
    try require(
      answer.methodUsed == used?.method ?? transaction.method || isFallback,
      "method_used is not the request's method, a fallback or that of an alternative")
    try require(
      answer.fallbackFrom == nil
        || (answer.methodUsed != transaction.method && answer.fallbackFrom == transaction.method),
      "fallback_from is not the request's method")
    // Also an approval by a device that does not know this member.
    try require(answer.readBack == request.readBack, "read_back is not that of the request")
    guard answer.methodUsed != .push else { return .ending(.accepted, nil) }
    try require(answer.attempt == transaction.attempts + 1, "attempt is not the next one")
    guard let nonce = bytes(base64URL: transaction.nonce) else { throw AnswerError(why: "nonce is not Base64url") }
    if answer.methodUsed == .pushWithPIN {
      let claim = ApprovalClaim(nonce: nonce, requestSHA256: requestSHA256, decision: answer.decision)
      return .proof(try signature(answer.pinProof, "pin_proof"), of: claim)
    }
    guard let authenticator = used?.authenticator else {
      throw AnswerError(why: "authenticator is not one of the request's")
    }
    guard let data = CustomData.parse(answer.customData) else {
      throw AnswerError(why: "custom_data is not Base64 of at most \(AuthenticatorClaim.largestData) bytes")
    }
    return .authenticatorProof(
      try signature(answer.authenticatorProof, "authenticator_proof"),
      of: AuthenticatorClaim(
        nonce: nonce, requestSHA256: requestSHA256, decision: answer.decision, authenticator: authenticator, data: data)
    )
  }

  private static func signature(_ text: String?, _ name: String) throws(AnswerError) -> [UInt8] {
    guard let proof = text.flatMap({ bytes(base64URL: $0) }), proof.count == 64 else {
      throw AnswerError(why: "\(name) is not a signature")
    }
    return proof
  }
}
