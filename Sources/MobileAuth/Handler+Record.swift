/// What is written down about a request, and how it ends.
extension Handler {
  func entry(_ kind: AuditEntry.Kind, _ pending: PendingMobileAuthRequest, _ detail: String = "") -> AuditEntry {
    AuditEntry(
      kind, account: pending.account, transaction: pending.transaction, detail: detail,
      wallClockMilliseconds: timekeeper.wallClockMilliseconds)
  }

  func record(_ kind: AuditEntry.Kind, _ pending: PendingMobileAuthRequest, _ detail: String = "") throws(CustodyFault)
  {
    let entry = entry(kind, pending, detail)
    try custody.record(entry)
    report(.audited(entry))
  }

  /// The request has ended for this token; `outcome` is the last word in the audit chain.
  func finish(_ pending: PendingMobileAuthRequest, _ outcome: String) throws(CustodyFault) {
    let entry = entry(.settled, pending, outcome)
    try custody.settle(pending.transaction, entry)
    report(.audited(entry))
    inbox.finish(pending)
  }

  /// The same before an answer has left: the request of a locked account stays pending.
  func refuse(_ pending: PendingMobileAuthRequest, _ fault: TokenServerFault) throws(CustodyFault) -> Deliveries.Ending
  {
    guard case .locked(let how) = fault else { return try finish(pending, refusedBy: fault) }
    try record(.refused, pending, "the account is \(how)")
    inbox.withhold(pending.transaction, Withholding(lock: how, contents: ""))
    return Deliveries.Ending(indications: [.misconfigured])
  }

  /// The server refused a step; what that means for the token is decided in one place, `TokenServerFault.effect`.
  func finish(
    _ pending: PendingMobileAuthRequest, refusedBy fault: TokenServerFault
  ) throws(CustodyFault) -> Deliveries.Ending {
    var ending = Deliveries.Ending()
    if case .outcomeUnknown(let why) = fault {
      try finish(pending, "unknown for good: \(why)")
      ending.indications = [.outcomeUnknown]
    } else if case .alreadyHandled(let state) = fault {
      try finish(pending, Self.describe(elsewhere: state))
    } else {
      try finish(pending, "not approved: \(fault)")
      // Somebody may stand there and wait. Why it failed only the log can say.
      ending.indications = [.misconfigured]
      if fault.effect != .retry { servers[pending.server]?.ended(pending.transaction) }
      if fault.effect == .stop { inbox.set(.stopped, to: pending.server) }
      if let loss = EnrolmentLoss(fault, at: pending.server, pending.account, pending.transaction) {
        if let entry = try loss.carryOut(on: custody, at: timekeeper.wallClockMilliseconds) { report(.audited(entry)) }
        ending.indications = [.mustEnrol]
        if fault.effect == .wipeAccount { report(.accountLost(pending.account)) }
        report(.rosterChanged)
      }
    }
    return ending
  }

  func show(_ ending: Deliveries.Ending) async {
    for indication in ending.indications where !Task.isCancelled { await panel.show(indication) }
  }
}
