// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Servers that do not respond, or are malicious, delay only their own requests.
@Suite(.timeLimit(.minutes(5))) struct StarvationTests {
  private let world = World()

  /// The third server's request is the oldest and exists before the handler runs.
  private func announceThird() {
    world.announce([world.request(3, of: world.thirdServer, sentAt: 1, lives: .seconds(600))], by: world.thirdServer)
  }

  /// Advances the clock by at most 2 s.
  private func thirdIsAskedAbout() async throws {
    try await world.withHandler {
      let start = world.timekeeper.now
      for _ in 0..<20 where world.panel.prompts.isEmpty {
        // Waits in real time too, because a busy machine may delay the handler.
        _ = try? await eventually(within: .milliseconds(50)) { !world.panel.prompts.isEmpty }
        if world.panel.prompts.isEmpty { world.timekeeper.advance(by: .milliseconds(100)) }
      }
      #expect(await World.turn { world.panel.prompts.count == 1 })
      #expect(world.timekeeper.now - start <= .seconds(2))
      world.panel.perform(accept)
      #expect(await World.turn { world.thirdServer.delivered.count == 1 })
    }
    #expect(world.custody.outcomes(of: World.transaction(3)) == ["approved, receipt receipt-1"])
  }

  @Test("Two servers that do not respond do not delay a third server's request") func hangingServers() async throws {
    announceThird()
    for (number, server) in [world.server, world.otherServer].enumerated() {
      server.hang("open")
      server.hang("status")
      world.announce([world.request(number + 1, of: server, sentAt: .max)], by: server)
    }
    try await thirdIsAskedAbout()
  }

  @Test("Two servers that list requests which cannot be opened do not delay a third server's request")
  func lyingServers() async throws {
    announceThird()
    for (number, server) in [world.server, world.otherServer].enumerated() {
      server.breakDown("open", .notHandleable("forged"))
      let list = (1...300).map { world.request((number + 1) * 1000 + $0, of: server, sentAt: .max) }
      world.announce(list, by: server)
    }
    try await thirdIsAskedAbout()
  }

  @Test("A server that lists requests which cannot be opened causes a bounded number of audit entries")
  func lyingServerIsSlowedDown()
    async throws
  {
    world.server.breakDown("open", .notHandleable("forged"))
    world.announce((1...200).map { world.request($0, lives: .seconds(600)) }, by: world.server)
    try await world.withHandler {
      try await eventually { world.server.calls(of: "open") > 0 && world.timekeeper.sleeping > 0 }
      for _ in 0..<600 {
        let sleeping = world.timekeeper.sleeping
        let nobodyWakes = world.timekeeper.untilNextWakes.map { $0 > .milliseconds(100) } ?? false
        world.timekeeper.advance(by: .milliseconds(100))
        if nobodyWakes { continue }
        // All tasks that woke have acted when as many sleep again; a task that does not sleep again costs this time.
        _ = try? await eventually(within: .milliseconds(200)) { world.timekeeper.sleeping >= max(sleeping, 1) }
      }
    }
    // 0.5, 1, 2 and 4 s, then every 8 s, for a minute.
    #expect((5...13).contains(world.server.calls(of: "open")), "\(world.server.calls(of: "open"))")
    #expect(world.custody.audit.count <= 26)
  }

  @Test("Two servers that answer no status query do not delay a third server's request")
  func silentAboutOutcomes() async throws {
    for (number, server) in [world.server, world.otherServer].enumerated() {
      server.hang("status")
      world.announce([], by: server)
      world.custody.plant(
        AnswerIntent(
          transaction: World.transaction(number + 1), server: server.id, account: AccountID("A"),
          idempotencyKey: "key", decision: .accept))
    }
    announceThird()
    try await thirdIsAskedAbout()
    #expect(world.server.calls(of: "status") == 1 && world.panel.shown.contains(.outcomeUnknown))
  }

  @Test("A request whose answer may have counted is not shown again") func unknownIsNotAskedAgain()
    async throws
  {
    world.server.hang("status")
    world.custody.plant(
      AnswerIntent(
        transaction: World.transaction(1), server: world.server.id, account: AccountID("A"), idempotencyKey: "key",
        decision: .accept))
    try await world.withHandler {
      world.announce(world.request(2), world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(deny)
      await world.panel.until(showing: .outcomeUnknown)
    }
    #expect(world.server.delivered.map(\.request.pending.transaction) == [World.transaction(2)])
    #expect(world.panel.prompts.count == 1)
  }

  @Test("A request that is not opened within 10 s is deferred in favor of others of its server") func lateOpening()
    async throws
  {
    try await world.withHandler {
      world.server.hang(opening: World.transaction(2))
      world.announce(world.request(2, lives: .seconds(600)), world.request(1, lives: .seconds(600)))
      let start = world.timekeeper.now
      await world.pass { world.panel.prompts.count == 1 }
      #expect(world.timekeeper.now - start >= .seconds(10) && world.timekeeper.now - start <= .seconds(11))
      world.panel.perform(accept)
      #expect(await World.turn { world.server.delivered.count == 1 })
      // Then it is opened again.
      #expect(await World.turn { world.server.calls(of: "open") == 3 })
    }
    #expect(world.server.delivered.map(\.request.pending.transaction) == [World.transaction(1)])
  }

  @Test("After a wrong PIN, the panel is released if the server does not send the request again") func lateReopening()
    async throws
  {
    world.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(600)))
      await world.panel.until(challenges: 1)
      world.server.hang("open")
      world.panel.perform(accept)
      await world.panel.until(showing: .pinWrong(remaining: 2))
      world.announce([world.request(3, of: world.thirdServer, lives: .seconds(600))], by: world.thirdServer)
      await world.pass { world.panel.prompts.count == 2 }
      world.panel.perform(deny)
      #expect(await World.turn { world.thirdServer.delivered.count == 1 })
    }
  }

  @Test("A panel task waits only for answers to its own server") func tasksWaitForTheirServer() async throws {
    world.server.breakDown("deliver", .unreachable("down"))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(600)))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.pass { world.server.delivered.count >= 6 }
      let own = Task {
        try await world.errands.perform(at: world.server.id) { _ in world.recorder.add(.rosterChanged) }
      }
      try await world.errands.perform(at: world.otherServer.id) { _ in }
      #expect(!world.recorder.events.contains(.rosterChanged))
      world.server.mend("deliver")
      await world.pass { world.recorder.events.contains(.rosterChanged) }
      try await own.value
    }
  }
}
