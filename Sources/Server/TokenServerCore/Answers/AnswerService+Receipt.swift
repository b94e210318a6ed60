// SPDX-License-Identifier: Apache-2.0
import Cryptography
import OpenPGP
import ReferenceProtocol

extension AnswerService {
  /// The receipt of an ending, signed for the device that sent the answer.
  /// - Returns: nil if the answer does not end the request.
  /// - Throws: `ServerKeyring.ExpiredCertificateError` for an approval.
  package func end(
    _ verificationResult: Verification, of arrival: ArrivedAnswer, for request: AnsweredRequest
  ) async throws -> TransactionEnd? {
    guard case .ending(let ending, let denial) = verificationResult else { return nil }
    let receipt = Random.uuid()
    let transaction = request.transaction
    var transactionEnd = TransactionEnd(receipt: receipt, idempotencyKey: arrival.key, denial: denial)
    let content = ApprovalReceipt(
      // The issuer name at the time of the request.
      iss: request.content.iss, clientID: transaction.clientID.text, profileID: transaction.profileID.text,
      transactionID: transaction.id, state: ending.state, receipt: receipt, idempotencyKey: arrival.key,
      answerSHA256: SHA256.hash(arrival.body).base64URL)
    do {
      // A denial needs no keys; an approval has already been decrypted with them.
      if let (key, certificate) = try await keyring.correspondence(of: request.profile) {
        transactionEnd.sealed = try key.seal(JSON.encode(content), to: certificate).base64
      }
    } catch is ServerKeyring.ExpiredCertificateError where ending == .denied {
      // A denial counts all the same, without a signed receipt.
    }
    return transactionEnd
  }
}
