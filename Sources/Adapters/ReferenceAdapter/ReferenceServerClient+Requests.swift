// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import HTTP
package import MobileAuth
import OpenPGP
import ReferenceProtocol
import Synchronization

/// The pending list, and the messages of its requests.
extension ReferenceServerClient {
  package func pendingRequests() async throws(TokenServerError) -> [PendingMobileAuthRequest] {
    let (asked, ticket) = (environment.now, listedMessage.ticket)
    let accounts = accounts.withLock { $0 }
    let (name, value) = PendingList.includingMessage
    let response = try await client.call(.get, "/pending?\(name)=\(value)", takesBeginning: true)
    let entries =
      response.isTruncated
      ? PendingEntries.whole(in: response.body) : try DeviceClient.decode(PendingList.self, response).requests
    if let newest = entries.first, let transaction = TransactionID(newest.transactionID) {
      listedMessage.put(newest.sealedMessage, of: transaction, askedAt: asked, ticket)
    }
    return entries.compactMap { entry in
      // Requests of unknown profiles are not shown.
      guard let account = accounts[entry.profileID], let transaction = TransactionID(entry.transactionID),
        !revocations.isStopped(entry.profileID), (0...86_400_000).contains(entry.expiresInMs)
      else { return nil }
      return PendingMobileAuthRequest(
        transaction: transaction, server: id, account: account.id, sentAtMilliseconds: entry.sentAtMs,
        timeToLive: .milliseconds(entry.timeToLiveMs), message: entry.message?.sanitized,
        summary: RequestSummary(type: entry.typeHint?.sanitized),
        deadline: asked + .milliseconds(entry.expiresInMs))
    }
  }

  package func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    let account = try self.account(pending.account)
    guard let message = bytes(base64: try await sealedMessage(of: pending)) else {
      throw .notHandleable("the message is not Base64")
    }
    let plaintext: [UInt8]
    do { plaintext = try account.key.open(message, from: account.serverCertificate) } catch {
      throw .notHandleable("the message is not encrypted to this device and signed by the token server: \(error)")
    }
    let request: ApprovalRequest
    do { request = try JSON.decode(ApprovalRequest.self, from: plaintext) } catch { throw .notHandleable("\(error)") }
    guard request.v == 1 else { throw .notHandleable("version \(request.v) of the request format") }
    guard request.iss == client.issuer else { throw .notHandleable("the message is from \(request.iss.sanitized)") }
    try request.requireSameTexts(as: pending)
    let challenge = try await challenge(of: request, for: account.id)
    guard let attempt = UInt8(exactly: request.attempt ?? 1) else { throw .notHandleable("attempt out of range") }
    guard let nonce = bytes(base64URL: request.nonce), nonce.count == 32 else { throw .notHandleable("no nonce") }
    guard let transaction = TransactionID(request.transactionID) else { throw .notHandleable("no transaction id") }
    return try pending.opened(
      VerifiedContents(
        transaction: transaction,
        account: request.clientID == clientID && request.profileID == account.profile ? account.id : nil,
        type: request.type.sanitized, texts: VerifiedTexts(request), challenge: challenge,
        answerContext: SHA256.hash(plaintext) + nonce + [attempt, noteReceipts(of: account.profile, request)]))
  }

  /// The message as Base64: from the last list, or fetched.
  private func sealedMessage(of pending: PendingMobileAuthRequest) async throws(TokenServerError) -> String {
    if let listed = listedMessage.take(of: pending.transaction, at: environment.now) { return listed }
    let response = try await client.call(
      .get, "/requests/\(pending.transaction)/message", about: profile(of: pending.account))
    return try DeviceClient.decode(SealedRequest.self, response).message
  }

  private func challenge(
    of request: ApprovalRequest, for account: AccountID
  ) async throws(TokenServerError) -> Challenge {
    switch request.method {
    case .push: return .confirmation
    case .pushWithPIN:
      guard let pin = try await confirmedPINChange(account).pin else {
        throw .notHandleable("it needs a PIN, and the account has none")
      }
      guard let counts = FailureCounts(max: request.maxFailureCount, previous: request.previousFailureCount) else {
        throw .notHandleable("it has no valid count of wrong PINs")
      }
      return .pin(PINChallenge(length: pin.current.length, counts: counts))
    case .pushWithFingerprint, .pushWithCustomAuthenticator:
      throw .notHandleable("it needs \(request.method.rawValue)")
    }
  }
}
