// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

/// A server with valid requests causes a bounded number of audit entries and log lines, and a bounded queue of them.
@Suite(.timeLimit(.minutes(5))) struct LineBudgetTests {
  private let fixture = HandlerFixture()

  private var lines: [AuditEntry] {
    fixture.events.all.compactMap { if case .audited(let entry) = $0 { entry } else { nil } }
  }

  /// The touched request stays on the panel, while its server lists another newest one every 3 s.
  private func hold(_ steps: Int, _ body: () async throws -> Void) async throws {
    let held = fixture.request(1, lives: .seconds(86_400))
    try await fixture.withHandler {
      fixture.announce(held)
      await fixture.panel.until(challenges: 1)
      for event in [PanelEvent.touched, .released] { fixture.panel.perform(event) }
      await HandlerFixture.turn { fixture.inbox.pending.keepsPanel(held.transaction) }
      for step in 1...steps {
        let opened = fixture.server.calls(of: "open")
        fixture.announce(fixture.request(100 + step, lives: .seconds(86_400)), held)
        _ = try? await eventually("another opening", within: .milliseconds(500)) {
          fixture.server.calls(of: "open") > opened
        }
        await fixture.clock.untilAsleep()
        fixture.clock.advance(by: .seconds(3))
        for _ in 0..<100 { await Task.yield() }
        #expect(fixture.stateStore.queueLength <= Handler.longestQueue + 10)
      }
      try await body()
    }
  }

  @Test("While a request is on the panel, the lines of its server are limited and written") func limited() async throws
  {
    try await hold(110) {
      #expect(fixture.server.calls(of: "open") > 90)
      #expect(fixture.panel.prompts.count == 1)
      fixture.panel.perform(accept)
      await HandlerFixture.turn { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
    }
    // The decision and its outcome are not limited.
    let ends: [AuditEntry.Kind] = [.decided, .settled]
    #expect(fixture.stateStore.audit.map(\.kind).suffix(2) == ends)
    #expect(fixture.stateStore.audit.count <= Inbox.hourlyLines + 1 + ends.count)
    #expect(lines.count <= Inbox.hourlyLines + 1 + ends.count)
    #expect(lines.count { $0.kind == .leftOut } == 1)
    #expect(!fixture.stateStore.durableAudit.isEmpty)
  }

  /// Fails if they are kept until the request on the panel ends.
  @Test("Requests that leave the list while another one is on the panel end at once") func endedMeanwhile() async throws
  {
    try await hold(5) {
      await HandlerFixture.turn { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(103)).isEmpty }
      #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty)
      #expect(fixture.panel.prompts.count == 1)
    }
  }

  @Test("The lines about requests of a locked account are limited") func blocked() async throws {
    let list = { (first: Int) -> [PendingMobileAuthRequest] in
      (first..<first + 200).map { number -> PendingMobileAuthRequest in
        var request = fixture.request(number)
        request.blockedBy = BlockedRequestInfo(lock: "locked by the user", contents: "push")
        return request
      }
    }
    fixture.server.set(list: list(1))
    let listener = RequestListener(
      to: fixture.server, inbox: fixture.inbox, stateStore: fixture.stateStore, in: fixture.environment)
    let running = Task { try await listener.run() }
    try await eventually("200 audit entries") { fixture.stateStore.audit.count == 200 }
    fixture.server.set(list: list(1001))
    fixture.server.hint(.pendingChanged)
    try await eventually("the new list") { fixture.inbox.pending.contains(HandlerFixture.transaction(1200)) }
    try await eventually("all blocked requests are reported") {
      fixture.inbox.blocked.unreported(of: fixture.server.id).isEmpty
    }
    running.cancel()
    _ = try? await running.finished()
    #expect(fixture.stateStore.audit.count == Inbox.hourlyLines + 1)
    #expect(lines.count == Inbox.hourlyLines + 1 && lines.last?.kind == .leftOut)
  }

  @Test("A limit is for one subject and one hour, and what was omitted is counted") func limiter() {
    let limiter = HourlyLimiter<String>(limit: 2)
    let take = { (subject: String, seconds: Int) in
      limiter.take(subject, at: MonotonicInstant(uptime: .seconds(seconds)))
    }
    #expect([0, 1, 2, 3, 3599].map { take("a", $0) }.map { $0 == .allowed(omitted: 0) }.count { $0 } == 2)
    #expect(take("b", 10) == .allowed(omitted: 0) && take("a", 3599) == .omitted)
    #expect(take("b", 11) == .allowed(omitted: 0) && take("b", 12) == .limitReached && take("b", 13) == .omitted)
    #expect(take("a", 3600) == .allowed(omitted: 4) && take("a", 3601) == .allowed(omitted: 0))
    #expect(take("a", 3602) == .limitReached)
  }
}
