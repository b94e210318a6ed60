import ApprovalTestKit
import MobileAuth
import Testing

/// Servers that do not answer, or lie, delay only their own requests.
@Suite struct StarvationTests {
  private let world = World()

  /// The third server's request is the oldest, and there before the handler runs.
  private func announceThird() {
    world.announce([world.request(3, of: world.thirdServer, sentAt: 1, lives: .seconds(600))], by: world.thirdServer)
  }

  /// Lets at most 2 s pass.
  private func thirdIsAskedAbout() async throws {
    try await world.withHandler {
      let start = world.timekeeper.now
      for _ in 0..<20 where world.panel.prompts.isEmpty {
        for _ in 0..<500 { await Task.yield() }
        if world.panel.prompts.isEmpty { world.timekeeper.advance(by: .milliseconds(100)) }
      }
      #expect(await World.turn { world.panel.prompts.count == 1 })
      #expect(world.timekeeper.now - start <= .seconds(2))
      world.panel.perform(accept)
      #expect(await World.turn { world.thirdServer.delivered.count == 1 })
    }
    #expect(world.custody.outcomes(of: World.transaction(3)) == ["approved, receipt receipt-1"])
  }

  @Test("Two servers that hang do not keep the third's request from the panel") func hangingServers() async throws {
    announceThird()
    for (number, server) in [world.server, world.otherServer].enumerated() {
      server.hang("open")
      server.hang("status")
      world.announce([world.request(number + 1, of: server, sentAt: .max)], by: server)
    }
    try await thirdIsAskedAbout()
  }

  @Test("Two servers that list what cannot be opened do not keep the third's request from the panel")
  func lyingServers() async throws {
    announceThird()
    for (number, server) in [world.server, world.otherServer].enumerated() {
      server.breakDown("open", .notHandleable("forged"))
      let list = (1...300).map { world.request((number + 1) * 1000 + $0, of: server, sentAt: .max) }
      world.announce(list, by: server)
    }
    try await thirdIsAskedAbout()
  }

  @Test("A server that lists what cannot be opened writes a bounded number of lines") func lyingServerIsSlowedDown()
    async throws
  {
    world.server.breakDown("open", .notHandleable("forged"))
    world.announce((1...200).map { world.request($0, lives: .seconds(600)) }, by: world.server)
    try await world.withHandler {
      for _ in 0..<600 {
        for _ in 0..<50 { await Task.yield() }
        world.timekeeper.advance(by: .milliseconds(100))
      }
    }
    // 0.5, 1, 2 and 4 s, then every 8 s, for a minute.
    #expect((5...13).contains(world.server.calls(of: "open")), "\(world.server.calls(of: "open"))")
    #expect(world.custody.audit.count <= 26)
  }

  @Test("Two servers that answer no status question do not keep the third's request from the panel")
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

  @Test("Nobody is asked again about a request whose answer may have counted") func unknownIsNotAskedAgain()
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

  @Test("A request that cannot be opened within 10 s makes way for others of its server") func lateOpening()
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
      // Then it is tried again.
      #expect(await World.turn { world.server.calls(of: "open") == 3 })
    }
    #expect(world.server.delivered.map(\.request.pending.transaction) == [World.transaction(1)])
  }

  @Test("After a wrong PIN, a server that does not send the request again frees the panel") func lateReopening()
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

  @Test("A task at the panel waits for answers of its own server alone") func tasksWaitForTheirServer() async throws {
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
