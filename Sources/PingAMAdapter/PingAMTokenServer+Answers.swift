public import MobileAuth

extension PingAMTokenServer {
  /// A number that the login page cannot show ends the request here: AM would end the login at the first wrong one.
  static let slipsAllowed = 3

  public func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerFault) -> MobileAuthRequest {
    let account = try usable(pending.account)
    let kept = try take(pending.transaction, of: account)
    let (challenge, obstacle) = try self.challenge(of: kept.message, for: account)
    return try pending.opened(
      VerifiedContents(
        transaction: kept.delivered.transaction, profileMatches: kept.delivered.account == account.id,
        type: Self.describe(kept, obstacle), message: pending.message, challenge: challenge,
        answerContext: Array(kept.envelope.messageID.utf8)))
  }

  /// An account that is not locked.
  private func usable(_ id: AccountID) throws(TokenServerFault) -> Account {
    let account = try self.account(id)
    guard let lock = try lock(of: account) else { return account }
    throw .locked("\(lock)")
  }

  func lock(of account: Account) throws(TokenServerFault) -> AccountLock? {
    if let policy = try policyLocking(account.id) { return .byHand(policy: policy) }
    let violation = account.policies.violation(
      hasPIN: { ((try? around.judge?.counts(of: account.id)) ?? nil) != nil }, isTamperedWith: around.isTamperedWith)
    return violation.map { .byPolicy($0) }
  }

  /// Also while the card cannot say.
  func isLocked(_ id: AccountID) -> Bool {
    guard let account = accounts.first(where: { $0.id == id }) else { return false }
    do throws(TokenServerFault) { return try lock(of: account) != nil } catch { return true }
  }

  /// As the card says now: a lock by hand holds from the moment that it is there.
  private func policyLocking(_ id: AccountID) throws(TokenServerFault) -> String? {
    do throws(CustodyFault) {
      guard let record = try around.registry.accounts().first(where: { $0.id == id }) else { return nil }
      return try Mechanism(record)?.facts.lockedBy
    } catch { throw .unreachable("\(error)") }
  }

  private func take(
    _ transaction: TransactionID, of account: Account
  ) throws(TokenServerFault) -> KeptMessage {
    guard let found = try shelved(transaction), found.state == .pending else { throw .requestNotFound }
    guard found.account == account.id else { throw Self.renamed }
    return try KeptMessage(found, of: account.mechanism)
  }

  /// The message is the mechanism's, so that only its account's name can be another. Whoever renamed it says so at once,
  /// and then somebody else speaks for it.
  private static let renamed = TokenServerFault.unreachable("the account is being renamed")

  /// A card that cannot be read now may be read in a moment.
  private func shelved(_ transaction: TransactionID) throws(TokenServerFault) -> DeliveredMessage? {
    do { return try around.shelf.message(transaction) } catch { throw .unreachable("\(error)") }
  }

  /// - Returns: with it what keeps this token from accepting, if something does.
  private func challenge(
    of message: PushMessage, for account: Account
  ) throws(TokenServerFault) -> (Challenge, obstacle: String?) {
    switch message.kind {
    case .confirmation: return (.confirmation, nil)
    case .number(let numbers):
      guard
        let choice = ChoiceChallenge(
          options: numbers.map(String.init), counts: FailureCounts(max: 1, previous: 0), slipsAllowed: Self.slipsAllowed
        )
      else { throw .notHandleable("nobody could choose from its numbers") }
      return (.choice(choice), nil)
    case .biometric: return biometricChallenge(for: account)
    }
  }

  private func biometricChallenge(for account: Account) -> (Challenge, obstacle: String?) {
    guard around.takesPINForBiometric else {
      return (.impossible, "there is no fingerprint reader, and `pin_for_biometric = false` under [push] allows no PIN")
    }
    guard let judge = around.judge else { return (.impossible, "there is no keypad to type a PIN on") }
    guard let length = account.mechanism.facts.pinLength else {
      return (.impossible, "the account has no PIN yet, see `approval-token pin change`")
    }
    do throws(CustodyFault) {
      guard let counts = try judge.counts(of: account.id) else { throw .unknown("PIN of account \(account.id)") }
      return (.pin(PINChallenge(length: length, counts: counts)), nil)
    } catch { return (.impossible, "\(error)") }
  }

  public func seal(_ response: ChallengeResponse) async throws(TokenServerFault) -> SealedResponse {
    let pending = response.request.pending
    let account = try usable(pending.account)
    let kept = try take(pending.transaction, of: account)
    guard response.decision == .accept else {
      return response.sealed(PushAnswer.deny.body(to: kept, of: account.mechanism), isRepeatedAfterCut: true)
    }
    if case .biometric = kept.message.kind {
      guard let pin = response.pin, let judge = around.judge else { throw .notHandleable("no PIN was typed") }
      try await judge.approve(pin, of: account.id, timekeeper: around.timekeeper)
      // After a wrong one it waits for minutes: somebody may have locked the account.
      _ = try usable(account.id)
    }
    if case .number = kept.message.kind, response.choice == nil { throw .notHandleable("no number was chosen") }
    return response.sealed(
      PushAnswer.accept(number: response.choice).body(to: kept, of: account.mechanism), isRepeatedAfterCut: true)
  }

  /// Repeats are the same bytes: the last answer counts at AM, and it must not be another.
  public func deliver(_ response: SealedResponse) async throws(TokenServerFault) -> Verdict {
    let pending = response.request.pending
    let receipt = try await send(
      response.body, about: pending.transaction, of: try account(pending.account), response.decision,
      key: response.idempotencyKey)
    return try response.verdict(response.decision == .accept ? .authenticated : .rejected, receipt: receipt)
  }

  /// Nobody knows whether it had left before the cut. AM takes it once more all the same, until the login is over.
  public func repeated(_ intent: AnswerIntent, _ body: [UInt8]) async throws(TokenServerFault) -> RemoteStatus {
    guard let found = try shelved(intent.transaction), found.state == .pending else {
      return try await status(of: intent.transaction, account: intent.account)
    }
    guard found.account == intent.account else { throw Self.renamed }
    let account = try self.account(intent.account)
    let now = around.timekeeper.now
    guard deadline(of: try KeptMessage(found, of: account.mechanism), now: now) > now else {
      try end(intent.transaction, as: .unknown, answerKey: intent.idempotencyKey)
      throw .outcomeUnknown("the answer may have left, AM does not tell, and the time for another try is over")
    }
    setUncertain(intent.idempotencyKey)
    let receipt = try await send(
      body, about: intent.transaction, of: account, intent.decision, key: intent.idempotencyKey)
    return RemoteStatus(
      state: intent.decision == .accept ? .authenticated : .rejected, receipt: receipt,
      idempotencyKey: intent.idempotencyKey)
  }

  /// - Returns: the receipt.
  private func send(
    _ body: [UInt8], about transaction: TransactionID, of account: Account, _ decision: Decision, key: String
  ) async throws(TokenServerFault) -> String {
    do throws(TokenServerFault) {
      let kept = try take(transaction, of: account)
      guard try await post(body, about: kept, of: account, key: key) == .stored else {
        throw .answerInvalid("AM no longer waits for it, or finds the answer wrong (400)")
      }
      // Should the card fail here, a repeat may find that AM is done with the login.
      setUncertain(key)
      try end(transaction, as: decision == .accept ? .approved : .denied, answerKey: key)
      setCertain(key)
      return "\(kept.envelope.messageID) (AM has it; how the login ends it does not tell)"
    } catch {
      guard error.effect != .retry else { throw error }
      throw try meaning(of: error, for: transaction, key: key)
    }
  }

  private func post(
    _ body: [UInt8], about kept: KeptMessage, of account: Account, key: String
  ) async throws(TokenServerFault) -> PingAMClient.Reply {
    do {
      return try await client.post(body, to: account.mechanism.facts.authenticationURL, cookie: kept.message.cookie)
    } catch {
      setUncertain(key)
      // Only 400 is AM's word on the answer. A realm may be set up yet, and something before AM may let it through.
      guard error.effect == .retry else { throw .unreachable("\(error)") }
      throw error
    }
  }

  /// An answer that is refused was none, unless an earlier try of it may have arrived.
  private func meaning(
    of refusal: TokenServerFault, for transaction: TransactionID, key: String
  ) throws(TokenServerFault) -> TokenServerFault {
    guard isUncertain(key) else {
      try end(transaction, as: .failed, answerKey: nil)
      return refusal
    }
    try end(transaction, as: .unknown, answerKey: key)
    setCertain(key)
    return .outcomeUnknown("the connection broke, and AM does not tell whether the answer had arrived (\(refusal))")
  }

  public func ended(_ transaction: TransactionID) {
    try? end(transaction, as: .failed, answerKey: nil)
  }

  /// Whatever is not on the card when the power goes is asked of the person again, and AM takes the last answer: hence
  /// nothing is shown as done before.
  private func end(
    _ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?
  ) throws(TokenServerFault) {
    do { try around.shelf.end(transaction, as: state, answerKey: answerKey) } catch { throw .unreachable("\(error)") }
  }

  /// AM tells nobody. What this token wrote down is all there is.
  public func status(
    of transaction: TransactionID, account id: AccountID
  ) async throws(TokenServerFault) -> RemoteStatus {
    guard let found = try shelved(transaction), found.account == id else { throw .requestNotFound }
    switch found.state {
    case .approved:
      return RemoteStatus(state: .authenticated, receipt: found.reference, idempotencyKey: found.answerKey)
    case .denied: return RemoteStatus(state: .rejected, receipt: found.reference, idempotencyKey: found.answerKey)
    case .expired: return RemoteStatus(state: .expired)
    case .failed: throw .requestNotFound
    case .pending where !found.isBeingAnswered: return RemoteStatus(state: .open)
    case .pending, .unknown:
      try end(transaction, as: .unknown, answerKey: found.answerKey)
      throw .outcomeUnknown("the answer may have left, and AM does not tell")
    }
  }

  /// For the log. Whoever logs in has a hand in all that the message says; no part may crowd out another, as a line of
  /// the audit chain has room for 500 scalars.
  static func describe(_ kept: KeptMessage, _ obstacle: String? = nil) -> String {
    let message = kept.message
    var parts = [message.kind.name]
    if let obstacle { parts.append("can only be denied: \(obstacle)") }
    if let sent = message.sentAtMilliseconds { parts.append("sent at \(sent) ms") }
    if let text = message.text { parts.append("says \"\(text.forPeople(atMost: PushMessage.textLimit))\"") }
    if let context = message.context { parts.append("login from \(context.forPeople(atMost: 150))") }
    if let payload = message.payload, payload.contains(where: { !"{} ".contains($0) }) {
      parts.append("payload \(payload.forPeople(atMost: 100))")
    }
    return parts.joined(separator: ", ")
  }
}
