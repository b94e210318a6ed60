// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Servers that do not respond, or are malicious, delay only their own requests.
@Suite(.timeLimit(.minutes(5))) struct StarvationTests {
  private let fixture = HandlerFixture()

  /// The third server's request is the oldest and exists before the handler runs.
  private func announceThird() {
    fixture.announce(
      [fixture.request(3, of: fixture.thirdServer, sentAt: 1, lives: .seconds(600))], by: fixture.thirdServer)
  }

  /// Advances the clock by at most 2 s.
  private func thirdIsAskedAbout() async throws {
    try await fixture.withHandler {
      let start = fixture.clock.now
      for _ in 0..<20 where fixture.panel.prompts.isEmpty {
        // Waits in real time too, because a busy machine may delay the handler.
        _ = try? await eventually("a prompt", within: .milliseconds(50)) { !fixture.panel.prompts.isEmpty }
        if fixture.panel.prompts.isEmpty { fixture.clock.advance(by: .milliseconds(100)) }
      }
      await HandlerFixture.turn { fixture.panel.prompts.count == 1 }
      #expect(fixture.clock.now - start <= .seconds(2))
      fixture.panel.perform(accept)
      await HandlerFixture.turn { fixture.thirdServer.delivered.count == 1 }
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(3)) == ["approved, receipt receipt-1"])
  }

  @Test("Two servers that do not respond do not delay a third server's request") func hangingServers() async throws {
    announceThird()
    for (number, server) in [fixture.server, fixture.otherServer].enumerated() {
      server.hang("open")
      server.hang("status")
      fixture.announce([fixture.request(number + 1, of: server, sentAt: .max)], by: server)
    }
    try await thirdIsAskedAbout()
  }

  @Test("Two servers that list requests which cannot be opened do not delay a third server's request")
  func lyingServers() async throws {
    announceThird()
    for (number, server) in [fixture.server, fixture.otherServer].enumerated() {
      server.breakDown("open", .notHandleable("forged"))
      let list = (1...300).map { fixture.request((number + 1) * 1000 + $0, of: server, sentAt: .max) }
      fixture.announce(list, by: server)
    }
    try await thirdIsAskedAbout()
  }

  @Test("A server that lists requests which cannot be opened causes a bounded number of audit entries")
  func lyingServerIsSlowedDown()
    async throws
  {
    fixture.server.breakDown("open", .notHandleable("forged"))
    fixture.announce((1...200).map { fixture.request($0, lives: .seconds(600)) }, by: fixture.server)
    try await fixture.withHandler {
      try await eventually("a first opening, and a pause") {
        fixture.server.calls(of: "open") > 0 && fixture.clock.sleeping > 0
      }
      for _ in 0..<600 {
        let sleeping = fixture.clock.sleeping
        let isAsleep = fixture.clock.untilNextWakes.map { $0 > .milliseconds(100) } ?? false
        fixture.clock.advance(by: .milliseconds(100))
        if isAsleep { continue }
        // All tasks that woke have acted when as many sleep again; a task that does not sleep again costs this time.
        _ = try? await eventually("the tasks sleep again", within: .milliseconds(200)) {
          fixture.clock.sleeping >= max(sleeping, 1)
        }
      }
    }
    // 0.5, 1, 2 and 4 s, then every 8 s, for a minute.
    #expect((5...13).contains(fixture.server.calls(of: "open")), "\(fixture.server.calls(of: "open"))")
    #expect(fixture.stateStore.audit.count <= 26)
  }

  @Test("Two servers that answer no status query do not delay a third server's request")
  func silentAboutOutcomes() async throws {
    for (number, server) in [fixture.server, fixture.otherServer].enumerated() {
      server.hang("status")
      fixture.announce([], by: server)
      fixture.stateStore.plant(
        AnswerIntent(
          transaction: HandlerFixture.transaction(number + 1), server: server.id, account: AccountID("A"),
          idempotencyKey: "key", decision: .accept))
    }
    announceThird()
    try await thirdIsAskedAbout()
    #expect(fixture.server.calls(of: "status") == 1 && fixture.panel.shown.contains(.outcomeUnknown))
  }

  @Test("A request whose answer may have counted is not shown again") func unknownIsNotAskedAgain()
    async throws
  {
    fixture.server.hang("status")
    fixture.stateStore.plant(
      AnswerIntent(
        transaction: HandlerFixture.transaction(1), server: fixture.server.id, account: AccountID("A"),
        idempotencyKey: "key",
        decision: .accept))
    try await fixture.withHandler {
      fixture.announce(fixture.request(2), fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .outcomeUnknown)
    }
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(2)])
    #expect(fixture.panel.prompts.count == 1)
  }

  @Test("A request that is not opened within 10 s is deferred in favor of others of its server") func lateOpening()
    async throws
  {
    try await fixture.withHandler {
      fixture.server.hang(opening: HandlerFixture.transaction(2))
      fixture.announce(fixture.request(2, lives: .seconds(600)), fixture.request(1, lives: .seconds(600)))
      await HandlerFixture.turn { fixture.server.calls(of: "open") == 1 }
      fixture.clock.advance(by: .milliseconds(9900))
      for _ in 0..<1000 { await Task.yield() }
      #expect(fixture.panel.prompts.isEmpty && fixture.server.calls(of: "open") == 1)
      fixture.clock.advance(by: .milliseconds(100))
      await HandlerFixture.turn { fixture.panel.prompts.count == 1 }
      fixture.panel.perform(accept)
      await HandlerFixture.turn { fixture.server.delivered.count == 1 }
      // Then it is opened again.
      await HandlerFixture.turn { fixture.server.calls(of: "open") == 3 }
    }
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(1)])
  }

  @Test("After a wrong PIN, the panel is released if the server does not send the request again") func lateReopening()
    async throws
  {
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.server.hang("open")
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(shown: .pinWrong(remaining: 2))
      fixture.announce([fixture.request(3, of: fixture.thirdServer, lives: .seconds(600))], by: fixture.thirdServer)
      await fixture.pass { fixture.panel.prompts.count == 2 }
      fixture.panel.perform(deny)
      await HandlerFixture.turn { fixture.thirdServer.delivered.count == 1 }
    }
  }

  @Test("A panel task waits only for answers to its own server") func tasksWaitForTheirServer() async throws {
    fixture.server.breakDown("deliver", .unreachable("down"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.pass { fixture.server.delivered.count >= 6 }
      let own = Task {
        try await fixture.panelTasks.perform(at: fixture.server.id) { _ in fixture.events.add(.rosterChanged) }
      }
      try await fixture.panelTasks.perform(at: fixture.otherServer.id) { _ in }
      #expect(!fixture.events.all.contains(.rosterChanged))
      fixture.server.mend("deliver")
      await fixture.pass { fixture.events.all.contains(.rosterChanged) }
      try await own.finished()
    }
  }
}
