// SPDX-License-Identifier: Apache-2.0
/// Audit entries of a request, and the end of a request.
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

  /// Ends the request for this token; `outcome` becomes its last audit entry.
  func finish(_ pending: PendingMobileAuthRequest, _ outcome: String) throws(CustodyFault) {
    let entry = entry(.settled, pending, outcome)
    try custody.settle(pending.transaction, entry)
    report(.audited(entry))
    inbox.finish(pending)
  }

  /// Ends a request before an answer was sent. The request of a locked account stays pending.
  func refuse(_ pending: PendingMobileAuthRequest, _ fault: TokenServerFault) throws(CustodyFault) -> Deliveries.Ending
  {
    guard case .locked(let how) = fault else { return try finish(pending, refusedBy: fault) }
    try record(.refused, pending, "the account is \(how)")
    inbox.withhold(pending.transaction, Withholding(lock: how, contents: ""))
    return Deliveries.Ending(indications: [.misconfigured])
  }

  /// Ends a request because the server refused a step. `TokenServerFault.effect` decides what the token deletes or
  /// stops.
  func finish(
    _ pending: PendingMobileAuthRequest, refusedBy fault: TokenServerFault
  ) throws(CustodyFault) -> Deliveries.Ending {
    var ending = Deliveries.Ending()
    if case .outcomeUnknown(let why) = fault {
      try finish(pending, "permanently unknown: \(why)")
      ending.indications = [.outcomeUnknown]
    } else if case .alreadyHandled(let state) = fault {
      try finish(pending, Self.describe(elsewhere: state))
    } else {
      try finish(pending, "not approved: \(fault)")
      // Show a failure: a user may be waiting. The reason is in the log.
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
