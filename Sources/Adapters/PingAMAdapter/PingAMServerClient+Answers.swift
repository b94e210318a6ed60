// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import MobileAuth
import ServerBackends

extension PingAMServerClient {
  /// The number of wrong number entries at which this token ends the request. A number that the login page cannot show
  /// is not sent: AM would end the login at the first wrong number.
  static let maxInvalidEntries = 3

  package func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    let account = try usable(pending.account)
    let kept = try take(pending.transaction, of: account)
    let challenge = try self.challenge(of: kept, for: account)
    return try pending.opened(
      VerifiedContents(
        transaction: kept.delivered.transaction, account: kept.delivered.account,
        type: Self.describe(kept, challenge.obstacle), texts: VerifiedTexts(kept.message), challenge: challenge,
        answerContext: Array(kept.envelope.messageID.utf8)))
  }

  /// Returns the account.
  /// - Throws: `.locked` if it is locked, `.notEnrolled` if this server has no such account.
  private func usable(_ id: AccountID) throws(TokenServerError) -> Account {
    let account = try self.account(id)
    guard let lock = try lock(of: account) else { return account }
    throw .locked("\(lock)")
  }

  func lock(of account: Account) throws(TokenServerError) -> AccountLock? {
    if let lock = try userLock(of: account.id) { return .manual(policy: lock.policy) }
    let violation = account.policies.violation(
      hasPIN: { ((try? dependencies.pinVerifier?.counts(of: account.id)) ?? nil) != nil },
      isTamperedWith: dependencies.isTamperedWith)
    return violation.map { AccountPolicies.lock(by: $0) }
  }

  /// Whether the account is locked. True also if storage cannot be read.
  func isLocked(_ id: AccountID) -> Bool {
    guard let account = accounts.first(where: { $0.id == id }) else { return false }
    do throws(TokenServerError) { return try lock(of: account) != nil } catch { return true }
  }

  /// Reads the user's lock from storage, so that a lock applies as soon as it is stored.
  private func userLock(of id: AccountID) throws(TokenServerError) -> UserLock? {
    let accounts: [AccountRecord]
    do throws(StateStoreError) { accounts = try dependencies.ingress.registry.accounts() } catch {
      throw .unreachable("\(error)")
    }
    // A damaged account may be locked.
    guard let account = accounts.first(where: { $0.id == id }) else { throw Self.renamed }
    return account.lock
  }

  private func take(
    _ transaction: TransactionID, of account: Account
  ) throws(TokenServerError) -> StoredMessage {
    guard let found = try storedRequest(transaction), found.state == .pending else { throw .requestNotFound }
    guard found.account == account.id else { throw Self.renamed }
    return try StoredMessage(found, of: account.mechanism)
  }

  /// The message was verified with this mechanism, so only the account's name can differ: a rename is in progress, and
  /// the reconfigured service will handle the message. Hence the error is temporary.
  private static let renamed = TokenServerError.unreachable("the account is being renamed")

  /// Reads a stored message. A storage error is reported as temporary.
  private func storedRequest(_ transaction: TransactionID) throws(TokenServerError) -> DeliveredMessage? {
    do { return try dependencies.messageStore.message(transaction) } catch { throw .unreachable("\(error)") }
  }

  private func challenge(of kept: StoredMessage, for account: Account) throws(TokenServerError) -> Challenge {
    switch kept.message.kind {
    case .confirmation: return .confirmation
    case .number(let numbers):
      guard
        let choice = ChoiceChallenge(
          options: numbers.map(String.init), counts: FailureCounts(max: 1, previous: 0),
          maxInvalidEntries: Self.maxInvalidEntries
        )
      else { throw .notHandleable("its numbers offer no usable choice") }
      return .choice(choice)
    case .biometric:
      let pin = pinChallenge(for: account)
      return standIns?.challenge(of: kept.delivered.transaction, for: account.id, orPIN: pin) ?? pin
    }
  }

  private func pinChallenge(for account: Account) -> Challenge {
    guard dependencies.settings.takesPINForBiometric else {
      return .impossible(
        because:
          "no authenticator that can be used now is registered for it, and `pin_for_biometric = false` in [push] "
          + "allows no PIN")
    }
    guard let pinVerifier = dependencies.pinVerifier else {
      return .impossible(because: "there is no keypad to type a PIN on")
    }
    guard let length = account.mechanism.metadata.pinLength else {
      return .impossible(because: "the account has no PIN; set one with `approval-token pin change`")
    }
    do throws(StateStoreError) {
      guard let counts = try pinVerifier.counts(of: account.id) else { throw .notFound(.pin(of: account.id)) }
      return .pin(PINChallenge(length: length, counts: counts))
    } catch { return .impossible(because: "\(error)") }
  }

  package func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse {
    let pending = response.request.pending
    let account = try usable(pending.account)
    let kept = try take(pending.transaction, of: account)
    guard response.decision == .accept else {
      return response.sealed(PushAnswer.deny.body(to: kept, of: account.mechanism), isResentAfterRestart: true)
    }
    if case .biometric = kept.message.kind { try await verify(response, of: account) }
    if case .number = kept.message.kind, response.choice == nil { throw .notHandleable("no number was chosen") }
    return response.sealed(
      PushAnswer.accept(number: response.choice).body(to: kept, of: account.mechanism), isResentAfterRestart: true)
  }

  private func verify(_ response: ChallengeResponse, of account: Account) async throws(TokenServerError) {
    if response.data != nil, let standIns { return try standIns.verify(response) }
    guard let pin = response.pin, let pinVerifier = dependencies.pinVerifier else {
      throw .notHandleable("no PIN was typed")
    }
    try await pinVerifier.approve(pin, of: account.id, in: dependencies.environment)
    // The check waits for minutes after wrong PINs: the account may have been locked since.
    _ = try usable(account.id)
    standIns?.noteRightPIN(of: account.id)
  }

  /// Sends the answer. A retry sends the same bytes, because AM keeps the last answer it receives.
  package func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    let pending = response.request.pending
    let receipt = try await send(
      response.body, about: pending.transaction, of: try account(pending.account), response.decision,
      key: response.idempotencyKey)
    return try response.verdict(response.decision == .accept ? .authenticated : .rejected, receipt: receipt)
  }

  /// Sends an answer again after a restart. It is unknown whether it was sent before. AM accepts it again until the
  /// login ends.
  package func resend(_ intent: AnswerIntent, _ body: [UInt8]) async throws(TokenServerError) -> RemoteStatus {
    guard let found = try storedRequest(intent.transaction), found.state == .pending else {
      return try await status(of: intent.transaction, account: intent.account)
    }
    guard found.account == intent.account else { throw Self.renamed }
    let account = try self.account(intent.account)
    let now = dependencies.environment.now
    guard deadline(of: try StoredMessage(found, of: account.mechanism), now: now) > now else {
      end(intent.transaction, as: .unknown, answerKey: intent.idempotencyKey)
      throw .outcomeUnknown("the answer may have been sent, AM has no status API, and the request has expired")
    }
    unconfirmed.insert(intent.idempotencyKey)
    let receipt = try await send(
      body, about: intent.transaction, of: account, intent.decision, key: intent.idempotencyKey)
    return RemoteStatus(
      state: intent.decision == .accept ? .authenticated : .rejected, receipt: receipt,
      idempotencyKey: intent.idempotencyKey)
  }

  /// - Returns: the receipt.
  private func send(
    _ body: [UInt8], about transaction: TransactionID, of account: Account, _ decision: Decision, key: String
  ) async throws(TokenServerError) -> String {
    do throws(TokenServerError) {
      let kept = try take(transaction, of: account)
      guard try await post(body, about: kept, of: account, key: key) == .stored else {
        throw .answerInvalid("AM no longer waits for this answer, or rejects it as wrong (400)")
      }
      end(transaction, as: decision == .accept ? .approved : .denied, answerKey: key)
      unconfirmed.remove(key)
      return "\(kept.envelope.messageID) (stored by AM, which does not report how the login ended)"
    } catch {
      guard error.effect != .retry else { throw error }
      throw meaning(of: error, for: transaction, key: key)
    }
  }

  private func post(
    _ body: [UInt8], about kept: StoredMessage, of account: Account, key: String
  ) async throws(TokenServerError) -> PingAMHTTPClient.Reply {
    do {
      return try await client.post(body, to: account.mechanism.metadata.authenticationURL, cookie: kept.message.cookie)
    } catch {
      unconfirmed.insert(key)
      // Only status 400 is AM's decision about the answer. Every other fault may be temporary: an administrator may
      // still set up the realm, or a gateway in front of AM may allow the request later.
      guard error.effect == .retry else { throw .unreachable(error.explanation) }
      throw error
    }
  }

  /// Maps a refused answer to an error. If an earlier attempt may have arrived, the outcome is unknown.
  private func meaning(
    of refusal: TokenServerError, for transaction: TransactionID, key: String
  ) -> TokenServerError {
    guard unconfirmed.contains(key) else {
      end(transaction, as: .failed, answerKey: nil)
      return refusal
    }
    end(transaction, as: .unknown, answerKey: key)
    unconfirmed.remove(key)
    return .outcomeUnknown(
      "the connection was lost, and AM cannot report whether the answer arrived (\(refusal.explanation))")
  }

  package func requestDidEnd(_ transaction: TransactionID) {
    end(transaction, as: .failed, answerKey: nil)
  }

  /// Records the end of a request. A power loss can forget it. If the request was answered, it also forgets that the
  /// answer's intent is resolved: the request is not shown to the user again, and the same answer is sent again. If it
  /// ended without an answer, it is shown again.
  private func end(_ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?) {
    dependencies.messageStore.end(transaction, as: state, answerKey: answerKey)
  }

  /// The state that this token recorded: AM has no status API.
  package func status(
    of transaction: TransactionID, account id: AccountID
  ) async throws(TokenServerError) -> RemoteStatus {
    guard let found = try storedRequest(transaction), found.account == id else { throw .requestNotFound }
    switch found.state {
    case .approved:
      return RemoteStatus(state: .authenticated, receipt: found.reference, idempotencyKey: found.answerKey)
    case .denied: return RemoteStatus(state: .rejected, receipt: found.reference, idempotencyKey: found.answerKey)
    case .expired: return RemoteStatus(state: .expired)
    case .failed: throw .requestNotFound
    case .pending where !found.isBeingAnswered: return RemoteStatus(state: .open)
    case .pending, .unknown:
      end(transaction, as: .unknown, answerKey: found.answerKey)
      throw .outcomeUnknown("the answer may have been sent, and AM has no status API")
    }
  }

  /// A description for the audit log. An attacker can influence every text in the message: each is limited in
  /// length, so that none displaces another in an audit line of 500 scalars.
  static func describe(_ kept: StoredMessage, _ obstacle: String? = nil) -> String {
    let message = kept.message
    var parts = [message.kind.name]
    if let obstacle { parts.append("can only be denied: \(obstacle)") }
    if let sent = message.sentAtMilliseconds { parts.append("sent at \(sent) ms") }
    if let text = message.text { parts.append("says \"\(text.sanitized(atMost: PushMessage.textLimit))\"") }
    if let context = message.context { parts.append("login from \(context.sanitized(atMost: 150))") }
    if let payload = message.payload, payload.contains(where: { !"{} ".contains($0) }) {
      parts.append("payload \(payload.sanitized(atMost: 100))")
    }
    return parts.joined(separator: ", ")
  }
}
