/// From a person's answer to the server's word on it.
extension Handler {
  enum Delivery: Sendable {
    /// The request has ended for this token.
    case ended
    case askAgain
  }

  /// The same answer under the same idempotency key until the server answers or the request's time is over. Only the
  /// server's verdict is shown as done; without one the outcome is unknown, and said to be.
  func deliver(_ response: SealedResponse, to server: any TokenServer) async throws -> Delivery {
    let pending = response.request.pending
    let decided = entry(.decided, pending, Self.describe(response))
    let intent = AnswerIntent(
      transaction: pending.transaction, server: pending.server, account: pending.account,
      idempotencyKey: response.idempotencyKey, decision: response.decision)
    // Durable before visible: from here on a crash knows that an answer may have left.
    try custody.journal(intent, decided)
    report(.audited(decided))
    await panel.show(.talkingToServer)
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, random: random)
    repeat {
      do {
        let verdict = try await server.deliver(response)
        try finish(pending, Self.describe(verdict.decision, receipt: verdict.receipt))
        reportRightPIN(response)
        await panel.show(verdict.decision == .accept ? .confirmed : .denied)
        if let code = verdict.code {
          report(.code(pending.account, code))
          await panel.show(.code(code.digits.compactMap(\.wholeNumberValue)))
        }
        return .ended
      } catch let fault as TokenServerFault {
        if case .pinIncorrect(let counts) = fault {
          try await takeBack(pending, .pinWrong, counts)
          return .askAgain
        }
        if case .choiceIncorrect(let counts) = fault {
          try await takeBack(pending, .choiceWrong, counts)
          return .askAgain
        }
        guard fault.effect == .retry else {
          try await finish(pending, refusedBy: fault)
          return .ended
        }
        try Task.checkCancellation()
        report(.retrying(pending.transaction, fault))
        await panel.show(.outcomeUnknown)
        try await timekeeper.sleep(until: min(timekeeper.now + retry.next(), pending.deadline))
      }
    } while timekeeper.now < pending.deadline
    // The intent stays journalled: `reconcile` asks the server as soon as it can be reached.
    try record(.settled, pending, "unknown: the token server did not confirm the answer in time")
    inbox.finish(pending.transaction)
    return .ended
  }

  /// The answer was none: the request is open and the person may try again.
  func takeBack(
    _ pending: PendingMobileAuthRequest, _ kind: AuditEntry.Kind, _ counts: FailureCounts
  ) async throws(CustodyFault) {
    let entry = entry(kind, pending, "\(counts)")
    try custody.settle(pending.transaction, entry)
    report(.audited(entry))
    if kind == .pinWrong { report(.counted(pending.account, counts)) }
    await panel.show(.pinWrong(remaining: counts.remaining))
  }

  private func reportRightPIN(_ response: SealedResponse) {
    guard response.decision == .accept, let challenge = response.request.contents.challenge.pin else { return }
    report(.counted(response.request.pending.account, FailureCounts(max: challenge.counts.max, previous: 0)))
  }

  /// Finds out what became of answers whose fate is not known, as far as their servers can be reached.
  /// - Returns: whether nothing is unknown any more.
  func reconcile() async throws -> Bool {
    var isEverythingKnown = true
    for intent in try custody.unsettledIntents() {
      guard let server = servers[intent.server] else {
        try settle(intent, "unknown for good: the token server is no longer enrolled")
        continue
      }
      guard inbox.connections[intent.server] == .connected else {
        isEverythingKnown = false
        continue
      }
      do {
        try settle(intent, by: try await server.status(of: intent.transaction, account: intent.account))
      } catch let fault as TokenServerFault {
        if fault.effect == .retry {
          isEverythingKnown = false
        } else {
          try settle(intent, "unknown for good: \(fault)")
        }
      }
    }
    return isEverythingKnown
  }

  private func settle(_ intent: AnswerIntent, by status: RemoteStatus) throws(CustodyFault) {
    if status.state == .open {
      // The answer never arrived. It is not sent again: the person is asked afresh.
      return try settle(intent, "not delivered: the request is still open")
    }
    if status.idempotencyKey == intent.idempotencyKey {
      try settle(intent, Self.describe(intent.decision, receipt: status.receipt ?? "none"))
    } else {
      try settle(intent, Self.describe(elsewhere: status.state))
    }
  }

  private func settle(_ intent: AnswerIntent, _ outcome: String) throws(CustodyFault) {
    let entry = AuditEntry(
      .settled, account: intent.account, transaction: intent.transaction, detail: outcome,
      wallClockMilliseconds: timekeeper.wallClockMilliseconds)
    try custody.settle(intent.transaction, entry)
    report(.audited(entry))
  }

  private static func describe(_ decision: Decision, receipt: String) -> String {
    switch decision {
    case .accept: "approved, receipt \(receipt)"
    case .deny(let reason): "denied (\(reason.rawValue)), receipt \(receipt)"
    }
  }

  private static func describe(_ response: SealedResponse) -> String {
    let word = response.decision == .accept ? "accept" : "deny"
    return switch response.gesture.kind {
    case .enter: if case .choice = response.request.contents.challenge { "\(word) by choice" } else { "\(word) by PIN" }
    case .cancelKeys: "\(word) by cancel keys"
    case .hold, .doublePress, .veryLongHold:
      "\(word) by \(response.gesture.kind.rawValue), held \(response.gesture.held.milliseconds) ms"
    }
  }
}

extension Duration {
  /// Whole milliseconds, rounded down.
  public var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
