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

  /// The maximum size of a decrypted request, in bytes. The longest message may take six bytes for each of its own.
  private static let longestRequest = 524_288

  package func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    let account = try self.account(pending.account)
    guard let message = bytes(base64: try await sealedMessage(of: pending)) else {
      throw .notHandleable("the message is not Base64")
    }
    let plaintext: [UInt8]
    do { plaintext = try account.key.open(message, from: account.serverCertificate, limit: Self.longestRequest) } catch
    {
      throw .notHandleable("the message is not encrypted to this device and signed by the token server: \(error)")
    }
    let request: ApprovalRequest
    do { request = try JSON.decode(ApprovalRequest.self, from: plaintext) } catch { throw .notHandleable("\(error)") }
    guard request.v == 1 else { throw .notHandleable("version \(request.v) of the request format") }
    guard request.iss == client.issuer else { throw .notHandleable("the message is from \(request.iss.sanitized)") }
    try request.requireSameTexts(as: pending)
    let (digest, readBack) = (SHA256.hash(plaintext), try request.digitsToType)
    let challenge =
      readBack != nil && capabilities?.keypad == false
      ? .impossible(because: "digits must be typed, and there is no keypad")
      : try await challenge(of: request, digest, for: account.id)
    guard request.method.rawValue.utf8.count <= 64 else { throw .notHandleable("the name of its method is too long") }
    guard let attempt = UInt8(exactly: request.attempt ?? 1) else { throw .notHandleable("attempt out of range") }
    guard let nonce = bytes(base64URL: request.nonce), nonce.count == 32 else { throw .notHandleable("no nonce") }
    guard let transaction = TransactionID(request.transactionID) else { throw .notHandleable("no transaction id") }
    return try pending.opened(
      VerifiedContents(
        transaction: transaction,
        account: request.clientID == clientID && request.profileID == account.profile ? account.id : nil,
        type: Self.describe(request, challenge), texts: VerifiedTexts(request), challenge: challenge,
        readBack: readBack,
        answerContext: digest + nonce + [attempt, noteReceipts(of: account.profile, request)]
          + Array(request.method.rawValue.utf8)))
  }

  /// The message as Base64: from the last list, or fetched.
  private func sealedMessage(of pending: PendingMobileAuthRequest) async throws(TokenServerError) -> String {
    if let listed = listedMessage.take(of: pending.transaction, at: environment.now) { return listed }
    let response = try await client.call(
      .get, "/requests/\(pending.transaction)/message", about: profile(of: pending.account))
    return try DeviceClient.decode(SealedRequest.self, response).message
  }

  /// The challenge of the request's authenticators that this token can use now, or of the fallback to the PIN.
  private func challenge(
    of request: ApprovalRequest, _ digest: [UInt8], for id: AccountID
  ) async throws(TokenServerError) -> Challenge {
    guard request.method != .push else { return .confirmation }
    let account = try account(id)
    let sources = request.authenticators.compactMap { source($0, of: request, digest, account) }
    guard
      var challenge = CustomChallenge(
        sources, fallback: nil, server: AuthenticatorChallenge.host(ofIssuer: client.issuer))
    else { return try await pinChallenge(of: request, for: id) }
    if request.takesPIN, case .pin(let pin) = try await pinChallenge(of: request, for: id) { challenge.fallback = pin }
    return .custom(challenge)
  }

  /// - Returns: nil for an authenticator that this token cannot use now.
  private func source(
    _ named: ApprovalRequest.Alternative, of request: ApprovalRequest, _ digest: [UInt8], _ account: Account
  ) -> AuthenticatorSource? {
    let (authenticator, method) = (named.authenticator, named.method)
    let kind: Authenticator.Kind = method == .pushWithFingerprint ? .biometric : .custom
    guard kind == .biometric || method == .pushWithCustomAuthenticator,
      let driver = drivers.usable(authenticator, as: kind),
      let stored = account.registered(authenticator), stored.kind == kind, isUnlocked(stored, of: account)
    else { return nil }
    return AuthenticatorSource(
      authenticator: authenticator, kind: kind, input: driver.input,
      challenge: AuthenticatorChallenge(toAccept: request, with: authenticator, digest).digest,
      registration: stored.driverData)
  }

  private func pinChallenge(
    of request: ApprovalRequest, for account: AccountID
  ) async throws(TokenServerError) -> Challenge {
    let method = request.method.rawValue.sanitized
    guard request.takesPIN else {
      return .impossible(because: "it needs \(method), which this token cannot use now, and does not allow the PIN")
    }
    guard let pin = try await confirmedPINChange(account).pin else {
      return .impossible(because: "it needs \(method), and the account has no PIN")
    }
    guard capabilities?.keypad != false else {
      return .impossible(because: "it needs \(method), and there is no keypad to type a PIN on")
    }
    guard let counts = FailureCounts(max: request.maxFailureCount, previous: request.previousFailureCount) else {
      throw .notHandleable("it has no valid count of wrong PINs")
    }
    return .pin(PINChallenge(length: pin.current.length, counts: counts))
  }

  /// A description for the audit log.
  private static func describe(_ request: ApprovalRequest, _ challenge: Challenge) -> String {
    let type = request.type.sanitized + (request.readBack == nil ? "" : ", digits to type")
    if let obstacle = challenge.obstacle { return "\(type), can only be denied: \(obstacle)" }
    if case .custom(let challenge) = challenge {
      return "\(type), with \(challenge.sources.map(\.authenticator).joined(separator: " or "))"
    }
    return request.method == .push || request.method == .pushWithPIN
      ? type : "\(type), with the PIN instead of \(request.method.rawValue.sanitized)"
  }

  package func deny(
    unopened pending: PendingMobileAuthRequest, because why: String, idempotencyKey: String
  ) async throws(TokenServerError) {
    let text = why.sanitized
    // A scalar has at most 4 bytes.
    let denial = Denial(reason: .canceled, underlyingError: text.utf8.count <= 256 ? text : text.cut(atMost: 64))
    _ = try await client.call(
      .post, "/requests/\(pending.transaction)/denials", body: JSON.encode(denial),
      headers: ["Idempotency-Key": idempotencyKey], about: profile(of: pending.account))
  }
}

extension AuthenticatorChallenge {
  /// What an authenticator signs to approve a request.
  /// - Parameter digest: SHA-256 over the exact decrypted request.
  fileprivate init(toAccept request: ApprovalRequest, with authenticator: String, _ digest: [UInt8]) {
    self.init(
      for: .push, issuer: request.iss, clientID: request.clientID, profileID: request.profileID,
      authenticator: authenticator, nonce: request.nonce)
    transactionID = request.transactionID
    decision = ApprovalAnswer.Decision.accept.rawValue
    requestSHA256 = digest.base64URL
    messageSHA256 = Self.digest(ofMessage: request.message)
  }
}
