// SPDX-License-Identifier: Apache-2.0
/// What the token's code takes from outside besides servers, storage and panel: time, randomness, identifiers, and a
/// place for events. The program makes one and hands it down; tests replace it as a whole.
package struct TokenEnvironment: Sendable {
  package let clock: any TokenClock
  /// Returns a new random number, uniform in 0..<1. For jitter, not for keys.
  package let random: @Sendable () -> Double
  /// Returns a new random UUID (RFC 9562) in lower case.
  package let makeUUID: @Sendable () -> String
  /// Called with each event, on any task.
  package let report: @Sendable (TokenEvent) -> Void

  package init(
    clock: any TokenClock, random: @escaping @Sendable () -> Double, makeUUID: @escaping @Sendable () -> String,
    report: @escaping @Sendable (TokenEvent) -> Void
  ) {
    self.clock = clock
    self.random = random
    self.makeUUID = makeUUID
    self.report = report
  }

  /// The same environment with another receiver of events.
  package func reporting(to report: @escaping @Sendable (TokenEvent) -> Void) -> TokenEnvironment {
    TokenEnvironment(clock: clock, random: random, makeUUID: makeUUID, report: report)
  }

  /// A new identifier of an enrollment, or of a registration.
  package func makeEnrollmentID() -> EnrollmentID { EnrollmentID(makeUUID()) }

  // MARK: Time

  package var now: MonotonicInstant { clock.now }

  /// Milliseconds since 1970, by the board's wall clock. Not used for decisions.
  package var wallClockMilliseconds: Int64 { clock.wallClockMilliseconds }

  /// Returns at `moment`, or at once if it has passed.
  /// - Throws: `CancellationError` when the task is canceled.
  package func sleep(until moment: MonotonicInstant) async throws { try await clock.sleep(until: moment) }

  /// Returns after the duration.
  /// - Throws: `CancellationError` when the task is canceled.
  package func sleep(for duration: Duration) async throws { try await clock.sleep(until: clock.now + duration) }

  // MARK: Audit entries

  /// An audit entry with the present time of the wall clock.
  package func auditEntry(
    _ kind: AuditEntry.Kind, account: AccountID? = nil, transaction: TransactionID? = nil, detail: String = ""
  ) -> AuditEntry {
    AuditEntry(
      kind, account: account, transaction: transaction, detail: detail, wallClockMilliseconds: wallClockMilliseconds)
  }

  /// An audit entry of a request, with the present time of the wall clock.
  func auditEntry(_ kind: AuditEntry.Kind, of request: PendingMobileAuthRequest, _ detail: String = "") -> AuditEntry {
    auditEntry(kind, account: request.account, transaction: request.transaction, detail: detail)
  }

  /// The entry that replaces the entries above the limit of an hour.
  func leftOutEntry(of request: PendingMobileAuthRequest) -> AuditEntry {
    auditEntry(.leftOut, account: request.account, detail: AuditEntry.leftOutDetail(limit: Inbox.hourlyLines))
  }
}
