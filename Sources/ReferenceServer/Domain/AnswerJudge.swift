import Cryptography
import ReferenceProtocol

/// Whether a decrypted answer, already known to be signed by the enrolled device, answers exactly this transaction.
enum AnswerJudge {
  struct Refusal: Error, Equatable {
    let why: String
  }

  /// - Returns: the ending, and for a refusal the reason that the device signed.
  static func judge(
    _ plaintext: [UInt8], for transaction: Transaction, issuer: String
  ) throws(Refusal) -> (Ending, DenialReason?) {
    let answer: ApprovalAnswer
    do { answer = try JSON.decode(ApprovalAnswer.self, from: plaintext) } catch { throw Refusal(why: "\(error)") }
    func require(_ holds: Bool, _ what: String) throws(Refusal) { if !holds { throw Refusal(why: what) } }
    try require(answer.v == 1, "v is not 1")
    try require(answer.aud == issuer, "aud is another server")
    try require(answer.clientID == transaction.clientID, "client_id is another device")
    try require(answer.profileID == transaction.profileID, "profile_id is another profile")
    try require(answer.transactionID == transaction.id, "transaction_id is another request")
    try require(
      constantTimeEqual(Array(answer.requestSHA256.utf8), Array(SHA256.hash(transaction.request).base64URL.utf8)),
      "request_sha256 is not the request that was sent")
    try require(
      constantTimeEqual(Array(answer.nonce.utf8), Array(transaction.nonce.utf8)), "nonce is not the request's")
    switch answer.decision {
    case .accept:
      try require(answer.methodUsed == transaction.method, "method_used is not the request's method")
      return (.accepted, nil)
    case .deny:
      return (.denied, answer.reason ?? .declined)
    }
  }
}
