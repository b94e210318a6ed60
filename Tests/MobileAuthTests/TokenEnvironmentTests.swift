// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

@Suite(.timeLimit(.minutes(1))) struct TokenEnvironmentTests {
  private let clock = ManualClock(wallClockMilliseconds: 1000)
  private let alice = AccountID("alice")

  @Test("An audit entry has the present time of the wall clock") func auditEntryHasPresentTime() throws {
    let environment = TokenEnvironment.test(clock)
    clock.advance(by: .seconds(2))
    #expect(
      environment.auditEntry(.renamed, account: alice, detail: "was bob")
        == AuditEntry(.renamed, account: alice, detail: "was bob", wallClockMilliseconds: 3000))
    let transaction = try #require(TransactionID(numberedUUID(7)))
    let request = PendingMobileAuthRequest(
      transaction: transaction, server: TokenServerID("s"), account: alice, sentAtMilliseconds: 5,
      timeToLive: .seconds(60), message: nil, deadline: environment.now + .seconds(60))
    #expect(
      environment.auditEntry(.settled, of: request, "expired")
        == AuditEntry(
          .settled, account: alice, transaction: transaction, detail: "expired", wallClockMilliseconds: 3000))
  }

  @Test("A sleep ends after its duration, not before") func sleepsForDuration() async throws {
    let environment = TokenEnvironment.test(clock)
    clock.advance(by: .seconds(5))
    async let sleep: Void = environment.sleep(for: .seconds(3))
    await clock.untilAsleep()
    #expect(clock.untilNextWakes == .seconds(3))
    clock.advance(by: .seconds(3))
    try await sleep
    #expect(environment.now == MonotonicInstant(uptime: .seconds(8)))
  }

  @Test("Another receiver of events changes nothing else") func anotherReceiver() {
    let (first, second) = (RecordedEvents(), RecordedEvents())
    let environment = TokenEnvironment.test(clock, recordingIn: first)
    let other = environment.reporting { second.add($0) }
    other.report(.rosterChanged)
    environment.report(.expiredUnannounced(TokenServerID("s"), 1))
    #expect(first.all == [.expiredUnannounced(TokenServerID("s"), 1)] && second.all == [.rosterChanged])
    // One sequence of identifiers, so that no two are the same.
    #expect([environment.makeUUID(), other.makeUUID()] == [numberedUUID(1), numberedUUID(2)])
    #expect(other.wallClockMilliseconds == 1000)
  }

  @Test("The same seed gives the same jitter, and no seed gives its middle") func seededJitter() {
    let draws = { (seed: UInt64?) in
      let environment = TokenEnvironment.test(clock, seed: seed)
      return (1...5).map { _ in environment.random() }
    }
    #expect(draws(1) == draws(1) && draws(1) != draws(2) && Set(draws(1)).count == 5)
    #expect(draws(1).allSatisfy { (0..<1).contains($0) })
    #expect(draws(nil) == [0.5, 0.5, 0.5, 0.5, 0.5])
  }
}
