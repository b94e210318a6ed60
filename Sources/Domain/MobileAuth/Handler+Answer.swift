// SPDX-License-Identifier: Apache-2.0
/// From the user's answer to the server's confirmation.
extension Handler {
  /// How many answers to a request on the panel can fail to be made, for reasons that may pass, before the request
  /// ends: a driver may answer again without the user.
  private static let sealAttempts = 3

  /// Consumes the PIN: it is released with `response`. Until it has ended, nothing replaces the request.
  /// - Throws: `CancellationError`, if the answer was not made because of the cancellation.
  func seal(
    _ response: ChallengeResponse, at server: any TokenServerClient, _ touch: Touch
  ) async throws -> ChallengeOutcome {
    touch.isHeld = true
    inbox.panel.startedAnswer.commit()
    let hasEntry = response.pin != nil || response.data != nil
    if !hasEntry, server.sealsWithoutDeciding {
      let sealing = Task { try await server.seal(response) }
      await panel.show(.talkingToServer)
      return .answered(response.sealed([]), sealing: sealing)
    }
    await panel.show(.talkingToServer)
    do { return .answered(try await server.seal(response)) } catch {
      if error.effect == .retry { try Task.checkCancellation() }
      return .refused(hasEntry ? error : error.withoutEntry)
    }
  }

  /// Sends the answer and shows the result. Only a confirmation by the server is shown as done; without one, the LED
  /// shows that the outcome is unknown. After `answerPatience` the delivery continues in the background.
  /// - Parameter sealing: makes the bytes of the answer; nil if it has them.
  func deliver(
    _ response: SealedResponse, _ sealing: Task<SealedResponse, any Error>?, to server: any TokenServerClient
  ) async throws -> Deliveries.Outcome {
    let pending = response.request.pending
    let decided = environment.auditEntry(.decided, of: pending, Self.describe(response))
    let intent = AnswerIntent(
      transaction: pending.transaction, server: pending.server, account: pending.account,
      idempotencyKey: response.idempotencyKey, decision: response.decision,
      body: response.isResentAfterRestart ? response.body : nil)
    // Write before sending: after a crash, the journal shows that an answer may have been sent.
    try stateStore.journal(intent, decided)
    environment.report(.audited(decided))
    inbox.pending.noteAnswered(pending.transaction)
    let outcome: Deliveries.Outcome
    do {
      outcome = try await send(sealing?.value ?? response, to: server)
    } catch let fault as TokenServerError {
      // Without its bytes, the answer was not sent.
      outcome = .finished(shows: try finish(pending, refusedBy: fault, isAnswered: true))
    }
    await show(outcome.indications)
    return outcome
  }

  private func send(_ response: SealedResponse, to server: any TokenServerClient) async throws -> Deliveries.Outcome {
    let pending = response.request.pending
    inbox.panel.sentAnswer.begin(to: pending.server)
    defer { inbox.panel.sentAnswer.end() }
    return try await deliveries.deliver(
      pending.transaction, to: pending.server, until: environment.now + Self.answerPatience
    ) {
      await panel.show(.outcomeUnknown)
    } _: {
      try await dispatch(response, to: server, onTrouble: $0)
    }
  }

  /// Sends the same bytes with the same idempotency key until the server responds or the request expires.
  private func dispatch(
    _ response: SealedResponse, to server: any TokenServerClient, onTrouble: @Sendable () -> Void
  ) async throws -> Deliveries.Outcome {
    let pending = response.request.pending
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, in: environment)
    var mayHaveArrived = false
    repeat {
      do {
        return conclude(response, try await server.deliver(response))
      } catch let error {
        let fault = error.plausible(after: response)
        if let outcome = reopen(pending, after: fault) { return outcome }
        if mayHaveArrived, fault.effect == .stop { return leaveUnknown(pending, fault) }
        guard fault.effect == .retry else {
          return .finished(shows: try finish(pending, refusedBy: fault, isAnswered: true))
        }
        mayHaveArrived = true
        try Task.checkCancellation()
        environment.report(.retrying(pending.server, pending.transaction, fault))
        onTrouble()
        try await environment.sleep(until: min(environment.now + retry.next(), pending.deadline))
      }
    } while environment.now < pending.deadline
    // The intent stays in the journal: `reconcile` queries the server when it is reachable.
    leaveUnconfirmed(pending, "the token server did not confirm the answer in time")
    return .finished(shows: [])
  }

  /// Ends an answer of which an earlier attempt may have arrived, at a server whose error only an operator can resolve.
  /// The intent stays in the journal: the outcome is queried when the server is connected again, or at the next start.
  private func leaveUnknown(_ pending: PendingMobileAuthRequest, _ fault: TokenServerError) -> Deliveries.Outcome {
    inbox.connectivity.set(.stopped, to: pending.server, because: fault)
    leaveUnconfirmed(pending, "\(fault)")
    return .finished(shows: [.seeLog])
  }

  private func leaveUnconfirmed(_ pending: PendingMobileAuthRequest, _ why: String) {
    record(.unconfirmed, pending, "unknown: \(why)")
    inbox.finish(pending)
    report(.requestUnconfirmed(.init(.outcomeUnknown(why))), pending)
  }

  private func conclude(_ response: SealedResponse, _ verdict: Verdict) -> Deliveries.Outcome {
    let pending = response.request.pending
    finish(
      pending,
      .answered(
        verdict.decision, receipt: verdict.receipt, authenticator: response.authenticator, verdict.info,
        underlyingError: response.underlyingError),
      isAnswered: true)
    reportRightPIN(response)
    var shows: [Indication] = [verdict.decision == .accept ? .confirmed : .denied]
    if let code = verdict.code {
      environment.report(.code(pending.account, pending.transaction, code))
      shows.append(.code(code.digits.compactMap(\.wholeNumberValue)))
    }
    return .finished(shows: shows)
  }

  /// Records that the answer did not count: the request is still open and the user may try again. If an authenticator
  /// is no longer registered, the request is opened again without it.
  /// - Returns: nil for a fault that ends the request.
  func reopen(_ pending: PendingMobileAuthRequest, after fault: TokenServerError) -> Deliveries.Outcome? {
    let kind: AuditEntry.Kind
    let detail: String
    let indication: Indication
    switch fault {
    case .pinIncorrect(let counts):
      (kind, detail, indication) = (.pinWrong, "\(counts)", .pinWrong(remaining: counts.remaining))
      environment.report(.counted(pending.account, counts))
    case .choiceIncorrect(let counts):
      (kind, detail, indication) = (.choiceWrong, "\(counts)", .pinWrong(remaining: counts.remaining))
    case .authenticatorFailed(let failure) where !failure.endsRequest:
      (kind, detail, indication) = (.authenticatorFailed, "\(failure)", .noSuchChoice)
    default: return nil
    }
    inbox.pending.noteAnnounced(pending)
    resolveIntent(of: pending.transaction, environment.auditEntry(kind, of: pending, detail))
    return .retryEntry(shows: indication, after: fault)
  }

  /// Reports that an answer could not be made, for a reason that may pass: nothing is decided, and the request is still
  /// open.
  /// - Parameter count: the number of such answers since the request is on the panel; is increased.
  /// - Returns: nil for another fault, or if there were too many.
  func retrySealing(
    _ pending: PendingMobileAuthRequest, after fault: TokenServerError, _ count: inout Int
  ) -> Deliveries.Outcome? {
    guard fault.effect == .retry else { return nil }
    count += 1
    guard count < Self.sealAttempts else { return nil }
    environment.report(.retrying(pending.server, pending.transaction, fault))
    return .retryEntry(shows: .seeLog, after: fault)
  }

  private func reportRightPIN(_ response: SealedResponse) {
    guard response.decision == .accept, response.hasPIN, let challenge = response.request.contents.challenge.pin else {
      return
    }
    environment.report(
      .counted(response.request.pending.account, FailureCounts(max: challenge.counts.max, previous: 0)))
  }

  /// Starts status queries, in the background, for answers whose outcome is unknown. Answers whose server has no status
  /// API are sent again. Those to an enrolled server without a client are left for a later handler, which may have one.
  /// - Returns: whether no answer is being sent and no outcome is being queried.
  func reconcile() throws(StateStoreError) -> Bool {
    // Read before the intents: the intent of a task that ends in between is already settled.
    let underway = deliveries.underway
    for intent in try stateStore.unresolvedIntents() where !underway.contains(intent.transaction) {
      guard let server = servers[intent.server] else {
        if !enrolled.contains(intent.server) {
          resolveIntent(intent, .unknown("the token server is no longer enrolled"))
        }
        continue
      }
      if let body = intent.body {
        deliveries.start(intent.transaction, to: intent.server, as: .answer) {
          try await dispatch(intent, body, to: server, onTrouble: $0)
        }
      } else {
        deliveries.start(intent.transaction, to: intent.server, as: .question) { _ in
          try await ask(about: intent, at: server)
        }
      }
    }
    return deliveries.isEverythingKnown
  }

  /// Queries the server when it is connected, and after every change, until the outcome is known.
  private func ask(about intent: AnswerIntent, at server: any TokenServerClient) async throws -> Deliveries.Outcome {
    while true {
      let generation = inbox.changes.generation
      if inbox.connectivity[intent.server] == .connected {
        do {
          resolveIntent(intent, by: try await server.status(of: intent.transaction, account: intent.account))
          return .finished(shows: [])
        } catch let fault {
          // A server that is stopped is queried again after the operator has resolved the error.
          guard fault.effect == .retry || fault.effect == .stop else {
            resolveIntent(intent, .unknown("\(fault)"))
            return .finished(shows: [])
          }
          try Task.checkCancellation()
        }
      }
      try await inbox.change(beyond: generation, until: environment.now + Self.unknownPause)
    }
  }

  /// Sends the same bytes again after a restart or reload interrupted their delivery. The server's adapter ends the
  /// retries when the request expires. If the token stops before that, the next start continues.
  private func dispatch(
    _ intent: AnswerIntent, _ body: [UInt8], to server: any TokenServerClient, onTrouble: @Sendable () -> Void
  ) async throws -> Deliveries.Outcome {
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, in: environment)
    while true {
      do {
        let status = try await server.resend(intent, body)
        resolveIntent(intent, by: status)
        guard status.idempotencyKey == intent.idempotencyKey else { return .finished(shows: []) }
        return .finished(shows: [intent.decision == .accept ? .confirmed : .denied])
      } catch let fault {
        guard fault.effect == .retry else {
          resolveIntent(intent, .unknown("\(fault)"))
          return .finished(shows: [])
        }
        try Task.checkCancellation()
        environment.report(.retrying(intent.server, intent.transaction, fault))
        onTrouble()
        try await environment.sleep(for: retry.next())
      }
    }
  }

  private func resolveIntent(_ intent: AnswerIntent, by status: RemoteStatus) {
    if status.state == .open {
      // The answer never arrived. It is not sent again: the user is asked again.
      return resolveIntent(intent, as: .settled, "not delivered: the request is still open")
    }
    resolveIntent(
      intent,
      status.idempotencyKey == intent.idempotencyKey
        ? .answered(intent.decision, receipt: status.receipt ?? "none") : .elsewhere(status.state))
  }

  private func resolveIntent(_ intent: AnswerIntent, _ outcome: RequestOutcome) {
    resolveIntent(intent, as: outcome.auditKind, outcome.detail)
    environment.report(.step(AuthenticationStep(outcome.event, of: intent.account, intent.transaction)))
  }

  private func resolveIntent(_ intent: AnswerIntent, as kind: AuditEntry.Kind, _ detail: String) {
    resolveIntent(
      of: intent.transaction,
      environment.auditEntry(kind, account: intent.account, transaction: intent.transaction, detail: detail))
  }

  private static func describe(_ response: SealedResponse) -> String {
    let word = response.decision == .accept ? "accept" : "deny"
    let isChoice = if case .choice = response.request.contents.challenge { true } else { false }
    let custom: CustomChallenge? =
      if case .custom(let challenge) = response.request.contents.challenge { challenge } else { nil }
    let hasReadBack = response.decision == .accept && response.request.contents.readBack != nil
    let how =
      switch response.gesture.kind {
      case .enter: "\(word) by \(isChoice ? "choice" : custom != nil && !response.hasPIN ? "code" : "PIN")"
      case .cancelKeys: "\(word) by cancel keys"
      case .authenticator, .authenticatorCancel:
        "\(word) by \(response.source ?? "authenticator")"
          + (response.underlyingError.map { ": \($0)" } ?? "")
      case .hold where isChoice: "\(word) by choice, held \(response.gesture.held.milliseconds) ms"
      case .hold, .doublePress, .denyButton, .veryLongHold:
        "\(word) by \(response.gesture.kind.rawValue), held \(response.gesture.held.milliseconds) ms"
      }
    return how + (hasReadBack ? ", after the digits" : "")
  }
}

extension Duration {
  /// Whole milliseconds, rounded toward zero and clamped to the range of `Int64`.
  package var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1000)
    let (sum, overflowsToo) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
    return overflows || overflowsToo ? (seconds < 0 ? .min : .max) : sum
  }
}
