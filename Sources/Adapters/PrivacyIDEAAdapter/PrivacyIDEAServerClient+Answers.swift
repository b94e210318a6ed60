// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import JSONValues
package import MobileAuth
import Secrets
import ServerBackends

extension PrivacyIDEAServerClient {
  /// The number of choices before this token denies the request. The server does not limit wrong choices.
  static let choicesAllowed = 2

  package func open(_ pending: PendingMobileAuthRequest) async throws(TokenServerError) -> MobileAuthRequest {
    let account = try self.account(pending.account)
    guard let entry = challenges.entry(pending.transaction), entry.account == account.id else { throw .requestNotFound }
    let challenge = entry.challenge
    // The server signed the URL, but can have signed a wrong one.
    guard isPlainHTTPS(challenge.url) else { throw .notHandleable("its answer would not go to an https address") }
    var type = "push \"\(challenge.title.sanitized)\""
    if host(of: challenge.url) != host(of: client.endpoint) { type += ", to be answered at \(host(of: challenge.url))" }
    if let choice = choice(of: entry) { type += ", with the choices \(choice.explanation.sanitized)" }
    let demand = try self.challenge(of: entry, pending.transaction, for: account)
    if let obstacle = demand.obstacle { type += ", can only be denied: \(obstacle)" }
    return try pending.opened(
      VerifiedContents(
        transaction: pending.transaction, account: challenge.serial == account.serial ? account.id : nil, type: type,
        texts: VerifiedTexts(challenge), challenge: demand,
        answerContext: Array("\(challenge.nonce)|\(challenge.url)".utf8)))
  }

  private func challenge(
    of entry: ChallengeStore.Entry, _ transaction: TransactionID, for account: Account
  ) throws(TokenServerError) -> Challenge {
    let pin = account.keys.wantsPIN && takesPIN(of: account) ? try pinChallenge(for: account) : nil
    let single: Challenge =
      if let pin { .pin(pin) } else if !takesPIN(of: account) {
        .impossible(
          because: "no authenticator that can be used now is registered for the fingerprint that is required, and "
            + "without `pin_for_biometric = true` in [push] no PIN is allowed")
      } else if account.keys.wantsPIN {
        .impossible(because: "a PIN is required, and the account has no PIN or the board has no keypad")
      } else { .confirmation }
    guard entry.challenge.options != nil else {
      return standIns?.challenge(of: transaction, for: account.id, orPIN: single) ?? single
    }
    guard single.obstacle == nil else { return single }
    guard let choice = choice(of: entry, pin: pin) else { throw .notHandleable("its options offer no usable choice") }
    return .choice(choice)
  }

  private func takesPIN(of account: Account) -> Bool { takesPINForBiometric || !account.wantsBiometric }

  func choice(of entry: ChallengeStore.Entry, pin: PINChallenge? = nil) -> ChoiceChallenge? {
    entry.challenge.options.flatMap {
      ChoiceChallenge(
        options: $0, counts: FailureCounts(max: Self.choicesAllowed, previous: entry.wrongChoices), pin: pin)
    }
  }

  /// - Returns: nil if the account has no PIN or the board has no keypad.
  private func pinChallenge(for account: Account) throws(TokenServerError) -> PINChallenge? {
    guard let pinVerifier, let length = account.pinLength else { return nil }
    do throws(StateStoreError) {
      guard let counts = try pinVerifier.counts(of: account.id) else { throw .notFound(.pin(of: account.id)) }
      return PINChallenge(length: length, counts: counts)
    } catch { throw .notHandleable("\(error)") }
  }

  package func seal(_ response: ChallengeResponse) async throws(TokenServerError) -> SealedResponse {
    let account = try self.account(response.request.pending.account)
    if response.decision == .accept { try await verify(response, of: account) }
    let takesReasons = challenges.entry(response.request.pending.transaction)?.challenge.takesReasons ?? false
    let answer: PushAnswer =
      switch response.decision {
      case .accept: .accept(presence: response.choice)
      case .deny(let reason): .decline(takesReasons ? PushAnswer.Reason(reason) : nil)
      }
    let nonce = Destination(response.request.contents.answerContext).nonce
    do { return response.sealed(try answer.body(nonce: nonce, serial: account.serial, key: account.keys.device)) } catch
    {
      throw .refused("signing failed: \(error)")
    }
  }

  private func verify(_ response: ChallengeResponse, of account: Account) async throws(TokenServerError) {
    if response.data != nil, let standIns { return try standIns.verify(response) }
    guard account.keys.wantsPIN else { return }
    guard let pin = response.pin, takesPIN(of: account) else { throw .notHandleable("no PIN was typed") }
    guard let pinVerifier else { throw .notHandleable("this board has no keypad to verify a PIN") }
    try await pinVerifier.approve(pin, of: account.id, in: environment)
    standIns?.noteRightPIN(of: account.id)
  }

  package func deliver(_ response: SealedResponse) async throws(TokenServerError) -> Verdict {
    let transaction = response.request.pending.transaction
    let destination = Destination(response.request.contents.answerContext)
    let (isRecorded, detail) = try await send(response, to: destination.url)
    guard isRecorded else { throw await refusal(of: response, detail?["message"]?.text?.sanitized) }
    challenges.finish(transaction)
    let code = detail?["display_code"]?.text.flatMap {
      PortalCode(digits: $0, message: (detail?["message"]?.text ?? "").sanitized)
    }
    return try response.verdict(
      response.decision == .accept ? .authenticated : .rejected, receipt: destination.nonce, code: code)
  }

  private func send(
    _ response: SealedResponse, to url: String
  ) async throws(TokenServerError) -> (isRecorded: Bool, detail: JSONValue?) {
    do { return try await client.answer(response.body, to: url) } catch {
      if error.effect == .retry {
        unconfirmed.insert(response.idempotencyKey)
        throw error
      }
      throw unconfirmed.remove(response.idempotencyKey) ? Self.unknown : error
    }
  }

  private static let unknown = TokenServerError.outcomeUnknown(
    "the connection was lost, and the token server cannot report whether the answer arrived")

  /// Finds out why the server refused an answer. The server gives no reason; a poll shows whether the challenge is
  /// still open: then no attempt at this answer was recorded. Without that poll the answer is to be sent again.
  private func refusal(of response: SealedResponse, _ message: String?) async -> TokenServerError {
    let (pending, noReason) = (response.request.pending, "it was not recorded")
    guard let account = try? self.account(pending.account) else { return .notEnrolled }
    switch await poll(account) {
    case .offline(let fault) where fault.effect == .retry: return fault
    case .some: return unconfirmed.remove(response.idempotencyKey) ? Self.unknown : .answerInvalid(message ?? noReason)
    case nil: break
    }
    let wasUnconfirmed = unconfirmed.remove(response.idempotencyKey)
    guard let entry = challenges.entry(pending.transaction) else {
      challenges.finish(pending.transaction)
      return wasUnconfirmed ? Self.unknown : .requestNotFound
    }
    guard response.decision == .accept, entry.challenge.options != nil else {
      return .answerInvalid(message ?? noReason)
    }
    let wrong = challenges.countWrongChoice(pending.transaction)
    guard wrong >= Self.choicesAllowed else {
      return .choiceIncorrect(FailureCounts(max: Self.choicesAllowed, previous: wrong))
    }
    return await decline(pending, account, response)
  }

  /// Denies the request after too many wrong choices: the user does not see the portal.
  private func decline(
    _ pending: PendingMobileAuthRequest, _ account: Account, _ response: SealedResponse
  ) async -> TokenServerError {
    let destination = Destination(response.request.contents.answerContext)
    let body = try? PushAnswer.decline(nil).body(
      nonce: destination.nonce, serial: account.serial, key: account.keys.device)
    let isDeclined =
      if let body { (try? await client.answer(body, to: destination.url))?.isRecorded == true } else { false }
    challenges.finish(pending.transaction)
    return .answerInvalid("\(Self.choicesAllowed) wrong choices; the request was\(isDeclined ? "" : " not") denied")
  }

  package func status(
    of transaction: TransactionID, account id: AccountID
  ) async throws(TokenServerError) -> RemoteStatus {
    switch await poll(try account(id)) {
    case .offline(let fault): throw fault
    case .some(let fault): throw .refused("\(fault)")
    case nil:
      guard challenges.entry(transaction) != nil else { throw .requestNotFound }
      return RemoteStatus(state: .open)
    }
  }
}

extension VerifiedTexts {
  /// - Parameter challenge: with a verified signature, which covers question and title.
  fileprivate init(_ challenge: PushChallenge) {
    self.init(
      signedWith: .rsa, type: challenge.title.sanitized,
      message: challenge.question.sanitizedText(atMost: Self.longestMessage))
  }
}

/// The nonce and URL of a challenge, as stored in `VerifiedContents.answerContext`.
private struct Destination {
  let nonce: String
  let url: String

  init(_ context: [UInt8]) {
    let parts = String(decoding: context, as: UTF8.self).split(
      separator: "|", maxSplits: 1, omittingEmptySubsequences: false)
    nonce = String(parts[0])
    url = parts.count > 1 ? String(parts[1]) : ""
  }
}

extension PushAnswer.Reason {
  fileprivate init(_ reason: DenialReason) {
    self =
      switch reason {
      case .declined, .canceled: .canceled
      case .notMe: .unknownTrigger
      }
  }
}

/// Returns the host and port.
/// - Parameter url: a URL that satisfies `isPlainHTTPS`.
private func host(of url: String) -> Substring {
  url.dropFirst("https://".count).prefix { $0 != "/" }
}
