// SPDX-License-Identifier: Apache-2.0
/// Audit entries of a request, and the end of a request.
extension Handler {
  func entry(_ kind: AuditEntry.Kind, _ pending: PendingMobileAuthRequest, _ detail: String = "") -> AuditEntry {
    AuditEntry(
      kind, account: pending.account, transaction: pending.transaction, detail: detail,
      wallClockMilliseconds: clock.wallClockMilliseconds)
  }

  func record(_ kind: AuditEntry.Kind, _ pending: PendingMobileAuthRequest, _ detail: String = "")
    throws(StateStoreError)
  {
    let entry = entry(kind, pending, detail)
    try stateStore.record(entry)
    report(.audited(entry))
  }

  /// Ends the request for this token; `outcome` becomes its last audit entry.
  func finish(_ pending: PendingMobileAuthRequest, _ outcome: String) throws(StateStoreError) {
    let entry = entry(.settled, pending, outcome)
    try stateStore.resolveIntent(pending.transaction, entry)
    report(.audited(entry))
    inbox.finish(pending)
  }

  /// Ends a request before an answer was sent. The request of a locked account stays pending.
  func refuse(_ pending: PendingMobileAuthRequest, _ fault: TokenServerError) throws(StateStoreError)
    -> Deliveries.Outcome
  {
    guard case .locked(let how) = fault else { return try finish(pending, refusedBy: fault) }
    try record(.refused, pending, "the account is \(how)")
    inbox.block(pending.transaction, BlockedRequestInfo(lock: how, contents: ""))
    return Deliveries.Outcome(indications: [.misconfigured])
  }

  /// Ends a request because the server refused a step. `TokenServerError.effect` decides what the token deletes or
  /// stops.
  func finish(
    _ pending: PendingMobileAuthRequest, refusedBy fault: TokenServerError
  ) throws(StateStoreError) -> Deliveries.Outcome {
    var ending = Deliveries.Outcome()
    if case .outcomeUnknown(let why) = fault {
      try finish(pending, "permanently unknown: \(why)")
      ending.indications = [.outcomeUnknown]
    } else if case .alreadyHandled(let state) = fault {
      try finish(pending, Self.describe(elsewhere: state))
    } else {
      try finish(pending, "not approved: \(fault)")
      // Show a failure: a user may be waiting. The reason is in the log.
      ending.indications = [.misconfigured]
      if fault.effect != .retry { servers[pending.server]?.requestDidEnd(pending.transaction) }
      if fault.effect == .stop { inbox.set(.stopped, to: pending.server) }
      if let loss = EnrollmentRevocation(fault, at: pending.server, pending.account, pending.transaction) {
        if let entry = try loss.apply(on: stateStore, at: clock.wallClockMilliseconds) { report(.audited(entry)) }
        ending.indications = [.mustEnroll]
        if fault.effect == .wipeAccount { report(.accountLost(pending.account)) }
        report(.rosterChanged)
      }
    }
    return ending
  }

  func show(_ ending: Deliveries.Outcome) async {
    for indication in ending.indications where !Task.isCancelled { await panel.show(indication) }
  }
}
