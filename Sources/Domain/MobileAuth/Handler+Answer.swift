// SPDX-License-Identifier: Apache-2.0
/// From the user's answer to the server's confirmation.
extension Handler {
  /// Sends the answer and shows the result. Only a confirmation by the server is shown as done; without one, the LED
  /// shows that the outcome is unknown. After `answerPatience` the delivery continues in the background.
  func deliver(_ response: SealedResponse, to server: any TokenServerClient) async throws -> Deliveries.Outcome {
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
    await panel.show(.talkingToServer)
    let outcome = try await deliveries.deliver(
      pending.transaction, to: pending.server, until: environment.now + Self.answerPatience
    ) {
      await panel.show(.outcomeUnknown)
    } _: {
      try await dispatch(response, to: server, onTrouble: $0)
    }
    await show(outcome.indications)
    return outcome
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
        if case .pinIncorrect(let counts) = fault { return reopenAfterWrongEntry(pending, .pinWrong, counts) }
        if case .authenticatorFailed(let failure) = fault { return reopen(pending, after: failure) }
        if case .choiceIncorrect(let counts) = fault { return reopenAfterWrongEntry(pending, .choiceWrong, counts) }
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
    record(.unconfirmed, pending, "unknown: the token server did not confirm the answer in time")
    inbox.finish(pending)
    return .finished(shows: [])
  }

  /// Ends an answer of which an earlier attempt may have arrived, at a server that is not contacted any more. The
  /// intent stays in the journal: the next start queries the outcome.
  private func leaveUnknown(_ pending: PendingMobileAuthRequest, _ fault: TokenServerError) -> Deliveries.Outcome {
    inbox.connectivity.set(.stopped, to: pending.server)
    record(.unconfirmed, pending, "unknown: \(fault)")
    inbox.finish(pending)
    return .finished(shows: [.seeLog])
  }

  private func conclude(_ response: SealedResponse, _ verdict: Verdict) -> Deliveries.Outcome {
    let pending = response.request.pending
    finish(pending, Self.describe(verdict.decision, receipt: verdict.receipt), isAnswered: true)
    reportRightPIN(response)
    var shows: [Indication] = [verdict.decision == .accept ? .confirmed : .denied]
    if let code = verdict.code {
      environment.report(.code(pending.account, pending.transaction, code))
      shows.append(.code(code.digits.compactMap(\.wholeNumberValue)))
    }
    return .finished(shows: shows)
  }

  /// Records that the answer did not count: the request is still open and the user may try again.
  func reopenAfterWrongEntry(
    _ pending: PendingMobileAuthRequest, _ kind: AuditEntry.Kind, _ counts: FailureCounts
  ) -> Deliveries.Outcome {
    resolveIntent(of: pending.transaction, environment.auditEntry(kind, of: pending, "\(counts)"))
    if kind == .pinWrong { environment.report(.counted(pending.account, counts)) }
    return .retryEntry(.pinWrong(remaining: counts.remaining))
  }

  /// Records that an authenticator other than the PIN failed: the request is still open. If the authenticator is no
  /// longer registered, the request is opened again without it.
  func reopen(_ pending: PendingMobileAuthRequest, after failure: AuthenticatorFailure) -> Deliveries.Outcome {
    resolveIntent(of: pending.transaction, environment.auditEntry(.authenticatorFailed, of: pending, "\(failure)"))
    return .retryEntry(.noSuchChoice)
  }

  private func reportRightPIN(_ response: SealedResponse) {
    guard response.decision == .accept, response.hasPIN, let challenge = response.request.contents.challenge.pin else {
      return
    }
    environment.report(
      .counted(response.request.pending.account, FailureCounts(max: challenge.counts.max, previous: 0)))
  }

  /// Starts status queries, in the background, for answers whose outcome is unknown. Answers whose server has no status
  /// API are sent again.
  /// - Returns: whether no outcome is unknown.
  func reconcile() throws(StateStoreError) -> Bool {
    // Read before the intents: the intent of a task that ends in between is already settled.
    let underway = deliveries.underway
    for intent in try stateStore.unresolvedIntents() where !underway.contains(intent.transaction) {
      guard let server = servers[intent.server] else {
        resolveIntent(intent, as: .unconfirmed, "permanently unknown: the token server is no longer enrolled")
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
            resolveIntent(intent, as: .unconfirmed, "permanently unknown: \(fault)")
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
          resolveIntent(intent, as: .unconfirmed, "permanently unknown: \(fault)")
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
      return resolveIntent(intent, "not delivered: the request is still open")
    }
    if status.idempotencyKey == intent.idempotencyKey {
      resolveIntent(intent, Self.describe(intent.decision, receipt: status.receipt ?? "none"))
    } else {
      resolveIntent(intent, Self.describe(elsewhere: status.state))
    }
  }

  private func resolveIntent(
    _ intent: AnswerIntent, as kind: AuditEntry.Kind = .settled, _ outcome: String
  ) {
    resolveIntent(
      of: intent.transaction,
      environment.auditEntry(kind, account: intent.account, transaction: intent.transaction, detail: outcome))
  }

  private static func describe(_ decision: Decision, receipt: String) -> String {
    switch decision {
    case .accept: "approved, receipt \(receipt)"
    // Number of the error catalog: canceled by the user.
    case .deny(.canceled):
      "denied (\(DenialReason.canceled.rawValue)), receipt \(receipt) (\(PanelDialog.canceledNumber))"
    case .deny(let reason): "denied (\(reason.rawValue)), receipt \(receipt)"
    }
  }

  private static func describe(_ response: SealedResponse) -> String {
    let word = response.decision == .accept ? "accept" : "deny"
    let isChoice = if case .choice = response.request.contents.challenge { true } else { false }
    let isCode = if case .custom = response.request.contents.challenge { !response.hasPIN } else { false }
    return switch response.gesture.kind {
    case .enter: "\(word) by \(isChoice ? "choice" : isCode ? "code" : "PIN")"
    case .cancelKeys: "\(word) by cancel keys"
    case .hold where isChoice: "\(word) by choice, held \(response.gesture.held.milliseconds) ms"
    case .hold, .doublePress, .denyButton, .veryLongHold:
      "\(word) by \(response.gesture.kind.rawValue), held \(response.gesture.held.milliseconds) ms"
    }
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
