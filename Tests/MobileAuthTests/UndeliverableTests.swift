// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// An answer that its server does not accept: other servers' requests continue, and the answer is neither lost nor
/// duplicated.
@Suite(.timeLimit(.minutes(5))) struct UndeliverableTests {
  /// Answers request 1 of the first server, which cannot be delivered, and continues when the panel is free again.
  private func withAnswerUnderway(
    lives: Duration = .seconds(600), _ body: (World) async throws -> Void
  ) async throws {
    let world = World()
    world.server.breakDown("deliver", .unreachable("down"))
    try await world.withHandler {
      world.announceElsewhere()
      world.announce(world.request(1, lives: lives))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(showing: .outcomeUnknown)
      try await body(world)
    }
  }

  private func unsettled(_ world: World) -> [TransactionID]? {
    try? world.custody.unsettledIntents().map(\.transaction)
  }

  private func first(_ world: World) -> [String] { world.custody.outcomes(of: World.transaction(1)) }

  @Test func anotherServersRequestIsAnsweredMeanwhile() async throws {
    try await withAnswerUnderway { world in
      world.announceElsewhere(world.request(2, of: world.otherServer, lives: .seconds(600)))
      // The panel's time limit of ten seconds, and the pause before the next attempt.
      await world.timekeeper.untilAsleep(2)
      world.timekeeper.advance(by: .milliseconds(9_900))
      await world.timekeeper.untilAsleep(2)
      #expect(world.panel.prompts.count == 1)
      world.timekeeper.advance(by: .milliseconds(100))
      await world.panel.until(challenges: 2)
      #expect(unsettled(world) == [World.transaction(1)])
      world.panel.perform(deny)
      try await eventually { !world.custody.outcomes(of: World.transaction(2)).isEmpty }
      // Without another request, the unknown outcome is shown again.
      await world.panel.until(showing: .outcomeUnknown)
      #expect(first(world).isEmpty)
      world.server.mend("deliver")
      await world.pass { !first(world).isEmpty }
      await world.panel.until(showing: .idle(pending: 0))
      #expect(first(world) == ["approved, receipt receipt-1"])
      #expect(world.custody.outcomes(of: World.transaction(2)) == ["denied (declined), receipt receipt-1"])
      #expect(Set(world.server.delivered.map(\.idempotencyKey)) == ["key-1"])
      #expect(world.otherServer.delivered.count == 1)
      #expect(world.server.calls(of: "status") == 0, "no status query about an answer that is still being sent")
      #expect(unsettled(world) == [])
      #expect(world.panel.shown.suffix(2) == [.confirmed, .idle(pending: 0)], "the panel was free for it")
    }
  }

  @Test func whatEndsUnderAnotherRequestIsNotTakenForItsEnd() async throws {
    try await withAnswerUnderway { world in
      world.announceElsewhere(world.request(2, of: world.otherServer, lives: .seconds(600)))
      await world.pass { world.panel.prompts.count == 2 }
      world.server.mend("deliver")
      await world.pass { !first(world).isEmpty }
      // The audit entry is written slightly before the ending.
      for _ in 0..<1000 { await Task.yield() }
      world.announceElsewhere()
      await world.panel.until(showing: .idle(pending: 0))
      #expect(first(world) == ["approved, receipt receipt-1"])
      #expect(!world.panel.shown.contains(.confirmed))
      #expect(
        world.recorder.events.contains {
          if case .audited(let entry) = $0 { entry.detail == "approved, receipt receipt-1" } else { false }
        })
    }
  }

  @Test func theSameServersRequestsWait() async throws {
    try await withAnswerUnderway { world in
      let one = world.request(1, lives: .seconds(600))
      world.announce(one, world.request(2, sentAt: 2000, lives: .seconds(600)))
      await world.pass { world.server.delivered.count >= 6 }
      #expect(world.panel.prompts.count == 1)
      world.server.mend("deliver")
      await world.pass { world.panel.prompts.count == 2 }
      #expect(first(world) == ["approved, receipt receipt-1"])
    }
  }

  @Test func aPINFoundWrongLateIsAskedForAgain() async throws {
    try await withAnswerUnderway { world in
      await world.pass { world.server.delivered.count >= 6 }
      world.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
      await world.pass { world.panel.prompts.count == 2 }
      #expect(world.panel.shown.contains(.pinWrong(remaining: 2)))
      #expect(unsettled(world) == [])
      world.server.mend("deliver")
      world.panel.perform(deny)
      await world.panel.until(showing: .idle(pending: 0))
      #expect(first(world) == ["denied (declined), receipt receipt-1"])
      #expect(Set(world.server.delivered.map(\.idempotencyKey)) == ["key-1", "key-2"])
    }
  }

  @Test func theRequestsTimeBoundsIt() async throws {
    try await withAnswerUnderway(lives: .seconds(40)) { world in
      world.server.breakDown("status", .unreachable("down"))
      let announced = world.timekeeper.now
      await world.pass { !first(world).isEmpty }
      #expect(world.timekeeper.now - announced >= .seconds(40))
      #expect(first(world) == ["unknown: the token server did not confirm the answer in time"])
      let sent = world.server.delivered.count
      await world.pass { world.server.calls(of: "status") > 0 }
      #expect(world.server.delivered.count == sent)
      #expect(unsettled(world)?.count == 1, "to be asked about")
    }
  }

  @Test func whoeverStopsTheTokenLeavesTheQuestionBehind() async throws {
    let world = World()
    world.server.breakDown("deliver", .unreachable("down"))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(600)))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.pass { world.server.delivered.count >= 6 }
    }
    world.server.mend("deliver")
    let sent = world.server.delivered.count
    world.timekeeper.advance(by: .seconds(30))
    for _ in 0..<1000 { await Task.yield() }
    #expect(world.server.delivered.count == sent, "nothing outlives the handler")
    #expect(unsettled(world) == [World.transaction(1)])
    #expect(first(world).isEmpty)
  }

  @Test func aLossFoundLateIsCarriedOut() async throws {
    try await withAnswerUnderway { world in
      world.announceElsewhere(world.request(2, of: world.otherServer, lives: .seconds(600)))
      await world.pass { world.panel.prompts.count == 2 }
      world.server.breakDown("deliver", .disenrolled)
      await world.pass { world.recorder.events.contains(.rosterChanged) }
      #expect(world.custody.droppedKeys == [AccountID("A")])
      #expect(first(world).count == 1 && first(world)[0].hasPrefix("not approved"))
    }
  }

  @Test func aDiskThatFailsLateIsSaid() async throws {
    try await withAnswerUnderway { world in
      await world.pass { world.server.delivered.count >= 6 }
      // The first is the delivery's entry, the second that of a handler that queries the server when the delivery has
      // just failed.
      for write in 1...2 { world.custody.fail(write: write, with: .storage("disk full")) }
      world.server.mend("deliver")
      await world.pass { world.recorder.events.contains(.custodyFailed(.storage("disk full"))) }
      await world.panel.until(showing: .misconfigured)
      #expect(unsettled(world)?.count == 1)
      #expect(!world.panel.shown.contains(.confirmed))
    }
  }

  @Test func aServerThatCannotBeReachedMakesWay() async throws {
    let world = World()
    try await world.withHandler {
      world.server.breakDown("open", .unreachable("down"))
      world.announce(world.request(1, sentAt: 2000))
      await world.panel.until(showing: .disconnected)
      world.announceElsewhere(world.request(2, of: world.otherServer, sentAt: 1000))
      world.inbox.set(.disconnected, to: world.server.id)
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      try await eventually { !world.custody.outcomes(of: World.transaction(2)).isEmpty }
      #expect(world.otherServer.delivered.count == 1)
    }
  }
}
