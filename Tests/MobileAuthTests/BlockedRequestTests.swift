// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Requests of accounts that are locked at this token.
@Suite(.timeLimit(.minutes(5))) struct BlockedRequestTests {
  private static let locked = BlockedRequestInfo(lock: "locked by the user", contents: "push")

  @Test("The user is not asked until the account is unlocked") func userIsNotAskedUntilTheAccountIsUnlocked()
    async throws
  {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      var newest = fixture.request(1, sentAt: 2000)
      newest.blockedBy = Self.locked
      let other = fixture.request(2, sentAt: 1000)
      fixture.announce(newest, other)
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(deny)
      // No request waits for the user.
      await fixture.panel.until(showing: .idle(pending: 0))
      #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(2)])
      #expect(fixture.inbox.pending.all.map(\.blockedBy) == [Self.locked])
      newest.blockedBy = nil
      fixture.announce(newest)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["approved, receipt receipt-1"])
  }

  @Test("Expires while the account is locked") func expiresWhileTheAccountIsLocked() async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      var request = fixture.request(1, lives: .seconds(10))
      request.blockedBy = Self.locked
      fixture.announce(request)
      // The announcement wakes the handler, which then sleeps until that time.
      try await eventually("the handler sleeps for 10 s") { fixture.clock.untilNextWakes == .seconds(10) }
      // The accounts are reloaded in between.
      fixture.inbox.forget(fixture.server.id)
      fixture.announce(request)
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .seconds(10))
      try await eventually("an outcome") { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
    }
    #expect(fixture.stateStore.audit.map(\.kind) == [.settled])
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["expired"])
    #expect(fixture.panel.prompts.isEmpty && fixture.server.calls(of: "open") == 0)
  }

  @Test("A lock that is put on meanwhile leaves it pending", arguments: ["open", "seal"])
  func aLockThatIsPutOnMeanwhileLeavesItPending(step: String) async throws {
    let fixture = HandlerFixture()
    fixture.server.fail(step, .locked("locked by the user"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      if step == "seal" {
        await fixture.panel.until(challenges: 1)
        fixture.panel.perform(accept)
      }
      try await eventually("the error is shown") { fixture.panel.shown.contains(.seeLog) }
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.audit.last?.kind == .refused)
    #expect(fixture.stateStore.audit.last?.detail == "the account is locked by the user")
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty && fixture.server.delivered.isEmpty)
    #expect(fixture.inbox.pending.all.map(\.transaction) == [HandlerFixture.transaction(1)])
    #expect(fixture.server.calls(of: "open") == 1 && fixture.server.calls(of: "ended") == 0)
  }

  @Test("The log says once who tried") func theLogSaysOnceWhoTried() async throws {
    let fixture = HandlerFixture()
    let listener = RequestListener(
      to: fixture.server, inbox: fixture.inbox, stateStore: fixture.stateStore, in: fixture.environment)
    var (first, second) = (fixture.request(1, sentAt: 1000), fixture.request(2, sentAt: 2000))
    first.blockedBy = BlockedRequestInfo(lock: "locked by the user", contents: "push, says \"hi\"")
    second.blockedBy = Self.locked
    fixture.server.set(list: [first])
    let running = Task { try await listener.run() }
    try await eventually("an audit entry") { !fixture.stateStore.audit.isEmpty }
    // The accounts are reloaded.
    fixture.inbox.forget(fixture.server.id)
    fixture.server.set(list: [second, first])
    fixture.server.hint(.pendingChanged)
    try await eventually("an audit entry of the second request") {
      fixture.stateStore.audit.last?.transaction == HandlerFixture.transaction(2)
    }
    running.cancel()
    _ = try? await running.finished()
    #expect(fixture.stateStore.audit.map(\.kind) == [.opened, .opened])
    #expect(
      fixture.stateStore.audit.map(\.detail) == [
        "account locked: push, says \"hi\"; it is locked by the user", "account locked: push; it is locked by the user",
      ])
    #expect(fixture.events.all.contains(.audited(fixture.stateStore.audit[0])))
  }
}
