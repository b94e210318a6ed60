/// From a person's answer to the server's word on it.
extension Handler {
  /// Only the server's verdict is shown as done; without one the outcome is unknown, and said to be. Whatever takes
  /// longer than a person stands there for goes on by itself.
  func deliver(_ response: SealedResponse, to server: any TokenServer) async throws -> Deliveries.Ending {
    let pending = response.request.pending
    let decided = entry(.decided, pending, Self.describe(response))
    let intent = AnswerIntent(
      transaction: pending.transaction, server: pending.server, account: pending.account,
      idempotencyKey: response.idempotencyKey, decision: response.decision,
      body: response.isRepeatedAfterCut ? response.body : nil)
    // Durable before visible: from here on a crash knows that an answer may have left.
    try custody.journal(intent, decided)
    report(.audited(decided))
    inbox.noteAnswered(pending.transaction)
    await panel.show(.talkingToServer)
    deliveries.start(pending.transaction, to: pending.server) {
      try await dispatch(response, to: server, onTrouble: $0)
    }
    let end = timekeeper.now + Self.answerPatience
    while true {
      let generation = inbox.generation
      if let ending = try deliveries.takeEnding(of: pending.transaction) {
        await show(ending)
        return ending
      }
      guard timekeeper.now < end else { return Deliveries.Ending() }
      if deliveries.isTroubled(pending.transaction) { await panel.show(.outcomeUnknown) }
      try await inbox.change(beyond: generation, until: end)
    }
  }

  /// The same answer under the same idempotency key until the server answers or the request's time is over.
  private func dispatch(
    _ response: SealedResponse, to server: any TokenServer, onTrouble: @Sendable () -> Void
  ) async throws -> Deliveries.Ending {
    let pending = response.request.pending
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, random: random)
    repeat {
      do {
        return try conclude(response, try await server.deliver(response))
      } catch let fault as TokenServerFault {
        if case .pinIncorrect(let counts) = fault { return try takeBack(pending, .pinWrong, counts) }
        if case .choiceIncorrect(let counts) = fault { return try takeBack(pending, .choiceWrong, counts) }
        guard fault.effect == .retry else { return try finish(pending, refusedBy: fault) }
        try Task.checkCancellation()
        report(.retrying(pending.transaction, fault))
        onTrouble()
        try await timekeeper.sleep(until: min(timekeeper.now + retry.next(), pending.deadline))
      }
    } while timekeeper.now < pending.deadline
    // The intent stays journalled: `reconcile` asks the server as soon as it can be reached.
    try record(.settled, pending, "unknown: the token server did not confirm the answer in time")
    inbox.finish(pending)
    return Deliveries.Ending()
  }

  private func conclude(_ response: SealedResponse, _ verdict: Verdict) throws(CustodyFault) -> Deliveries.Ending {
    let pending = response.request.pending
    try finish(pending, Self.describe(verdict.decision, receipt: verdict.receipt))
    reportRightPIN(response)
    var ending = Deliveries.Ending(indications: [verdict.decision == .accept ? .confirmed : .denied])
    if let code = verdict.code {
      report(.code(pending.account, code))
      ending.indications.append(.code(code.digits.compactMap(\.wholeNumberValue)))
    }
    return ending
  }

  /// The answer was none: the request is open and the person may try again.
  func takeBack(
    _ pending: PendingMobileAuthRequest, _ kind: AuditEntry.Kind, _ counts: FailureCounts
  ) throws(CustodyFault) -> Deliveries.Ending {
    let entry = entry(kind, pending, "\(counts)")
    try custody.settle(pending.transaction, entry)
    report(.audited(entry))
    if kind == .pinWrong { report(.counted(pending.account, counts)) }
    return Deliveries.Ending(asksAgain: true, indications: [.pinWrong(remaining: counts.remaining)])
  }

  private func reportRightPIN(_ response: SealedResponse) {
    guard response.decision == .accept, let challenge = response.request.contents.challenge.pin else { return }
    report(.counted(response.request.pending.account, FailureCounts(max: challenge.counts.max, previous: 0)))
  }

  /// Finds out, beside the panel, what became of answers whose outcome is unknown; those whose servers do not tell are on
  /// their way again.
  /// - Returns: whether nothing is unknown any more.
  func reconcile() throws(CustodyFault) -> Bool {
    // Looked at first: one that ends meanwhile is settled before the vault is asked.
    let underway = deliveries.underway
    for intent in try custody.unsettledIntents() where !underway.contains(intent.transaction) {
      guard let server = servers[intent.server] else {
        try settle(intent, "unknown for good: the token server is no longer enrolled")
        continue
      }
      if let body = intent.body {
        deliveries.start(intent.transaction, to: intent.server) {
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

  /// At once when the server is connected, and whenever something has changed, until it says.
  private func ask(about intent: AnswerIntent, at server: any TokenServer) async throws -> Deliveries.Ending {
    while true {
      let generation = inbox.generation
      if inbox.connections[intent.server] == .connected {
        do {
          try settle(intent, by: try await server.status(of: intent.transaction, account: intent.account))
          return Deliveries.Ending()
        } catch let fault as TokenServerFault {
          guard fault.effect == .retry else {
            try settle(intent, "unknown for good: \(fault)")
            return Deliveries.Ending()
          }
          try Task.checkCancellation()
        }
      }
      try await inbox.change(beyond: generation, until: timekeeper.now + Self.unknownPause)
    }
  }

  /// What a cut or a reload interrupted, with the same bytes; the server's adapter says when their time is over. A token
  /// that is stopped meanwhile does so at its next start.
  private func dispatch(
    _ intent: AnswerIntent, _ body: [UInt8], to server: any TokenServer, onTrouble: @Sendable () -> Void
  ) async throws -> Deliveries.Ending {
    var retry = Retry(from: Self.answerRetry.from, to: Self.answerRetry.to, random: random)
    while true {
      do {
        let status = try await server.repeated(intent, body)
        try settle(intent, by: status)
        guard status.idempotencyKey == intent.idempotencyKey else { return Deliveries.Ending() }
        return Deliveries.Ending(indications: [intent.decision == .accept ? .confirmed : .denied])
      } catch let fault as TokenServerFault {
        guard fault.effect == .retry else {
          try settle(intent, "unknown for good: \(fault)")
          return Deliveries.Ending()
        }
        try Task.checkCancellation()
        report(.retrying(intent.transaction, fault))
        onTrouble()
        try await timekeeper.sleep(until: timekeeper.now + retry.next())
      }
    }
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
    let isChoice = if case .choice = response.request.contents.challenge { true } else { false }
    return switch response.gesture.kind {
    case .enter: "\(word) by \(isChoice ? "choice" : "PIN")"
    case .cancelKeys: "\(word) by cancel keys"
    case .hold where isChoice: "\(word) by choice, held \(response.gesture.held.milliseconds) ms"
    case .hold, .doublePress, .veryLongHold:
      "\(word) by \(response.gesture.kind.rawValue), held \(response.gesture.held.milliseconds) ms"
    }
  }
}

extension Duration {
  /// Whole milliseconds, rounded down; as many as there are in an `Int64` if there are more.
  public var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1000)
    let (sum, overflowsToo) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
    return overflows || overflowsToo ? (seconds < 0 ? .min : .max) : sum
  }
}
