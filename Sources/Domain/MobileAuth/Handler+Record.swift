// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// Audit entries of a request, and the end of a request.
extension Handler {
  /// The maximum length of a request's text in an audit entry, in Unicode scalars. An entry has at most 500.
  private static let longestRecordedText = 300

  /// Adds an audit entry, without waiting for storage. Entries that the server's requests cause are limited.
  func record(_ kind: AuditEntry.Kind, _ pending: PendingMobileAuthRequest, _ detail: String = "") {
    let entry = environment.auditEntry(kind, of: pending, detail)
    // The uncertain end of an answer.
    guard kind != .unconfirmed else { return enqueue(.record(entry), entry) }
    enqueue(.record(entry), entry, by: pending)
  }

  private func enqueue(_ change: DeferredChange, _ entry: AuditEntry) {
    stateStore.enqueue(change)
    environment.report(.audited(entry))
  }

  /// Adds an entry that the server of the request caused without the user, unless there were too many of them.
  private func enqueue(_ change: DeferredChange, _ entry: AuditEntry, by pending: PendingMobileAuthRequest) {
    switch inbox.lines.take(pending.server, at: environment.now) {
    case .allowed: enqueue(change, entry)
    case .limitReached:
      let note = environment.leftOutEntry(of: pending)
      enqueue(.record(note), note)
    case .omitted: break
    }
  }

  /// Records that the request was decrypted and verified.
  func noteOpened(_ request: MobileAuthRequest) {
    let pending = request.pending
    record(.opened, pending, describe(opened: request.contents))
    if let challenge = request.contents.challenge.pin {
      environment.report(.counted(pending.account, challenge.counts))
    }
  }

  /// The audit detail of an opened request: its type, the digest of its signed text, and the text if it is recorded.
  private func describe(opened contents: VerifiedContents) -> String {
    guard let texts = contents.texts, let digest = texts.digest else { return contents.type }
    let base = "\(contents.type), message SHA-256 \(digest)"
    guard recordsTexts, let text = texts.message ?? texts.pushMessage else { return base }
    return "\(base), says \"\(text.sanitized(atMost: Self.longestRecordedText))\""
  }

  /// Resolves the intent of a request, without waiting for storage.
  func resolveIntent(of transaction: TransactionID, _ entry: AuditEntry) {
    stateStore.enqueue(.resolveIntent(transaction, entry))
    environment.report(.audited(entry))
  }

  /// Ends the request for this token; `outcome` becomes its last audit entry.
  /// - Parameter isAnswered: whether an answer is journaled, so that the entry is never omitted.
  func finish(_ pending: PendingMobileAuthRequest, _ outcome: RequestOutcome, isAnswered: Bool = false) {
    let entry = environment.auditEntry(outcome.auditKind, of: pending, outcome.detail)
    // Before the end is reported: who reads of it finds the request no longer pending.
    inbox.finish(pending)
    if isAnswered {
      resolveIntent(of: pending.transaction, entry)
    } else {
      enqueue(.resolveIntent(pending.transaction, entry), entry, by: pending)
    }
    report(outcome.event, pending, authenticator: outcome.authenticator)
  }

  /// Ends a request that has left the pending list. Queries the server for the reason in the background: an answer
  /// elsewhere, or the portal or the server ended it. A request that is open all the same is asked for again when a
  /// list has it.
  func finishElsewhere(_ pending: PendingMobileAuthRequest, at server: any TokenServerClient) {
    inbox.finish(pending)
    deliveries.start(pending.transaction, to: pending.server, as: .ending) { _ in
      switch try? await server.status(of: pending.transaction, account: pending.account).state {
      case .open?:
        finish(pending, .delisted("no longer listed by the token server, which calls it open"))
        inbox.pending.forgetEnd(of: pending)
      case let state?: finish(pending, .elsewhere(state))
      case nil: finish(pending, pending.unexplainedEnding(at: environment.now))
      }
      return .finished(shows: [])
    }
  }

  /// Ends a request before an answer was sent. The request of a locked account stays pending.
  /// - Returns: indications for the LED, in order.
  func refuse(_ pending: PendingMobileAuthRequest, _ fault: TokenServerError) throws(StateStoreError) -> [Indication] {
    guard case .locked(let how) = fault else {
      let indications = try finish(pending, refusedBy: fault, isAnswered: false)
      if case .notHandleable(let why) = fault { deny(unopened: pending, because: why) }
      return indications
    }
    record(.refused, pending, "the account is \(how)")
    inbox.block(pending.transaction, BlockedRequestInfo(lock: how, contents: ""))
    return [.seeLog]
  }

  /// How often the token tries to deny a request that it cannot open. Bounds what a malicious server can cause with
  /// such requests.
  private static let denialAttempts = 5

  /// Denies a request at its server, in the background.
  private func deny(unopened pending: PendingMobileAuthRequest, because why: String) {
    guard let server = servers[pending.server] else { return }
    let key = environment.makeUUID()
    deliveries.start(pending.transaction, to: pending.server, as: .ending) { _ in
      if let fault = try await deny(unopened: pending, because: why, idempotencyKey: key, at: server) {
        environment.report(.trouble(pending.account, "request \(pending.transaction) could not be denied: \(fault)"))
      }
      return .finished(shows: [])
    }
  }

  /// - Returns: the last error if the server did not accept the denial.
  private func deny(
    unopened pending: PendingMobileAuthRequest, because why: String, idempotencyKey key: String,
    at server: any TokenServerClient
  ) async throws -> TokenServerError? {
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, in: environment)
    var fault: TokenServerError?
    for _ in 1...Self.denialAttempts where environment.now < pending.deadline {
      do throws(TokenServerError) {
        try await server.deny(unopened: pending, because: why, idempotencyKey: key)
        return nil
      } catch { fault = error }
      guard fault?.effect == .retry else { return fault }
      try await environment.sleep(until: min(environment.now + retry.next(), pending.deadline))
    }
    return fault
  }

  /// Ends a request because the server refused a step. `TokenServerError.effect` decides what the token deletes or
  /// stops.
  /// - Returns: indications for the LED, in order.
  func finish(
    _ pending: PendingMobileAuthRequest, refusedBy fault: TokenServerError, isAnswered: Bool
  ) throws(StateStoreError) -> [Indication] {
    var shows: [Indication] = []
    if case .outcomeUnknown(let why) = fault {
      // An answer may have been sent earlier.
      finish(pending, .unknown(why), isAnswered: true)
      shows = [.outcomeUnknown]
    } else if case .alreadyHandled(let state) = fault {
      finish(pending, .elsewhere(state), isAnswered: isAnswered)
    } else {
      finish(pending, .notApproved(fault), isAnswered: isAnswered)
      // Show a failure: a user may be waiting. The reason is in the log.
      shows = [.seeLog]
      if fault.effect != .retry { servers[pending.server]?.requestDidEnd(pending.transaction) }
      if fault.effect == .stop { inbox.connectivity.set(.stopped, to: pending.server, because: fault) }
      if try revoke(pending, fault) { shows = [.mustEnroll] }
    }
    return shows
  }

  /// Deletes what the fault revokes, if it revokes anything.
  /// - Returns: whether the account must be enrolled again.
  private func revoke(
    _ pending: PendingMobileAuthRequest, _ fault: TokenServerError
  ) throws(StateStoreError) -> Bool {
    guard let server = servers[pending.server],
      let loss = EnrollmentRevocation(
        fault, at: pending.server, pending.account, pending.transaction, of: server.enrollments,
        keeping: server.remainder(of: pending.account))
    else { return false }
    // After a later enrollment, the accounts are read again, too: this client has the former keys.
    defer { environment.report(.rosterChanged) }
    let outcome = try loss.apply(on: stateStore, in: environment)
    if let entry = outcome.entry { environment.report(.audited(entry)) }
    guard outcome != .enrolledAgain else { return false }
    if fault.effect == .wipeAccount { environment.report(.accountLost(pending.account)) }
    return true
  }

  func show(_ indications: [Indication]) async {
    for indication in indications where !Task.isCancelled {
      // A code of eight nines blinks for almost two minutes.
      if case .code = indication { waits.work(until: environment.now + .seconds(120)) }
      await panel.show(indication)
    }
  }
}
