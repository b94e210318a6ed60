// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import HTTP
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Synchronization
import Threads

/// Statements that the token server signs with its key of an enrollment, so that a proxy cannot forge them.
extension ReferenceServerClient {
  /// The index in `VerifiedContents.answerContext` of the flag for signed receipts.
  private static let receiptFlag = 65

  /// Records whether the server signs receipts. The request is signed, so a proxy cannot remove the member.
  /// - Returns: 1 if the server signs receipts, else 0.
  func noteReceipts(of profile: String, _ request: ApprovalRequest) -> UInt8 {
    guard request.signedReceipt == true else { return 0 }
    _ = receiptSigners.withLock { $0.insert(profile) }
    return 1
  }

  /// Checks the receipt of an answer, if the request announced a signed one.
  /// - Throws: `.unreachable` (outcome unknown) unless the server signed a receipt for exactly this answer.
  func requireReceipt(_ status: RequestStatus, for response: SealedResponse) throws(TokenServerError) {
    let context = response.request.contents.answerContext
    guard context.count > Self.receiptFlag, context[Self.receiptFlag] == 1 else { return }
    let pending = response.request.pending
    let receipt = try receipt(in: status, of: pending.transaction, account: pending.account)
    guard receipt.idempotencyKey.lowercased() == response.idempotencyKey.lowercased(),
      receipt.answerSHA256 == SHA256.hash(response.body).base64URL
    else { throw .unreachable("the receipt is for another answer") }
  }

  /// Checks a later status response that says the request was answered.
  /// - Returns: the receipt for the audit log; it says so if the server did not sign it. Nil for a request that was not
  ///   answered.
  /// - Throws: `.unreachable` (outcome unknown) if the signature is wrong, or if there is none although the server has
  ///   signed receipts of this account since the start.
  func answered(
    _ status: RequestStatus, of transaction: TransactionID, account: AccountID
  ) throws(TokenServerError) -> String? {
    guard status.receipt != nil || status.idempotencyKey != nil else { return nil }
    let profile = try self.account(account).profile
    guard status.sealedReceipt != nil || receiptSigners.withLock({ $0.contains(profile) }) else {
      return "\(status.receipt?.sanitized ?? "none") (not signed)"
    }
    let receipt = try receipt(in: status, of: transaction, account: account)
    guard receipt.idempotencyKey == status.idempotencyKey else {
      throw .unreachable("the receipt is for another answer")
    }
    return receipt.receipt.sanitized
  }

  private func receipt(
    in status: RequestStatus, of transaction: TransactionID, account id: AccountID
  ) throws(TokenServerError) -> ApprovalReceipt {
    guard let sealed = status.sealedReceipt else { throw .unreachable("the receipt is not signed") }
    let account = try self.account(id)
    guard let receipt = Self.open(sealed, as: ApprovalReceipt.self, for: account), receipt.v == 1,
      receipt.iss == client.issuer, receipt.clientID == clientID, receipt.profileID == account.profile,
      receipt.transactionID == transaction.text, receipt.state == status.state, receipt.receipt == status.receipt
    else { throw .unreachable("the receipt is not the token server's, or not for this request") }
    return receipt
  }

  /// Returns the enrollments that the token server has proved to be removed.
  /// - Parameter response: a `Problem`, an `OAuthError` or a `ValidationResponse` with `revocations`. Notices that are
  ///   not signed by the server, or are for unknown accounts, are ignored.
  func provenRevocations(in response: HTTPResponse) -> Set<Revocations.Subject> {
    let notices = Self.notices(
      in: response, of: accounts.withLock { Array($0.values) }, issuer: client.issuer, clientID: clientID)
    withoutPush.withLock { profiles in
      for notice in notices {
        if notice.scope == .keys, notice.layer == .push {
          profiles.insert(notice.profileID)
        } else {
          profiles.remove(notice.profileID)
        }
      }
    }
    return Self.subjects(of: notices)
  }

  static func provenRevocations(
    in response: HTTPResponse, of accounts: [Account], issuer: String, clientID: String
  ) -> Set<Revocations.Subject> {
    subjects(of: notices(in: response, of: accounts, issuer: issuer, clientID: clientID))
  }

  private static func subjects(of notices: [RevocationNotice]) -> Set<Revocations.Subject> {
    var proven: Set<Revocations.Subject> = []
    for notice in notices {
      proven.insert(.keys(notice.profileID))
      if notice.scope != .keys { proven.insert(.profile(notice.profileID)) }
      if notice.scope == .device { proven.insert(.device) }
    }
    return proven
  }

  /// The maximum number of notices of one response, each of which costs a decryption for each account. The server sends
  /// no more.
  private static let mostNotices = 16

  /// The notices of the response that the server has signed with the key of one of the enrollments.
  private static func notices(
    in response: HTTPResponse, of accounts: [Account], issuer: String, clientID: String
  ) -> [RevocationNotice] {
    struct Notices: Decodable { let revocations: [String]? }
    let sealed = (try? JSON.decode(Notices.self, from: response.body))?.revocations ?? []
    if !sealed.isEmpty { threadWillBlock() }
    return sealed.prefix(mostNotices).flatMap { sealed in
      accounts.compactMap { account in
        guard let notice = open(sealed, as: RevocationNotice.self, for: account), notice.v == 1,
          notice.iss == issuer, notice.clientID == clientID, notice.profileID == account.profile
        else { return nil }
        return notice
      }
    }
  }

  private static func open<Statement: Decodable>(_ sealed: String, as type: Statement.Type, for account: Account)
    -> Statement?
  {
    guard let message = bytes(base64: sealed),
      let plaintext = try? account.key.open(message, from: account.serverCertificate, limit: 16_384)
    else { return nil }
    return try? JSON.decode(type, from: plaintext)
  }
}
