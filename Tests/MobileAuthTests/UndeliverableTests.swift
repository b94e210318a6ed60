// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// An answer that its server does not accept: other servers' requests continue, and the answer is neither lost nor
/// duplicated.
@Suite(.timeLimit(.minutes(5))) struct UndeliverableTests {
  /// Answers request 1 of the first server, which cannot be delivered, and continues when the panel is free again.
  private func withAnswerUnderway(
    to challenge: Challenge = .confirmation, by event: PanelEvent = accept, lives: Duration = .seconds(600),
    _ body: (HandlerFixture) async throws -> Void
  ) async throws {
    let fixture = HandlerFixture()
    fixture.server.set(challenge: challenge)
    fixture.server.breakDown("deliver", .unreachable("down"))
    try await fixture.withHandler {
      fixture.announceElsewhere()
      fixture.announce(fixture.request(1, lives: lives))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      await fixture.panel.until(showing: .outcomeUnknown)
      try await body(fixture)
    }
  }

  private func unsettled(_ fixture: HandlerFixture) -> [TransactionID]? {
    try? fixture.stateStore.unresolvedIntents().map(\.transaction)
  }

  private func first(_ fixture: HandlerFixture) -> [String] {
    fixture.stateStore.outcomes(of: HandlerFixture.transaction(1))
  }

  @Test("Another servers request is answered meanwhile") func anotherServersRequestIsAnsweredMeanwhile() async throws {
    try await withAnswerUnderway { fixture in
      fixture.announceElsewhere(fixture.request(2, of: fixture.otherServer, lives: .seconds(600)))
      // The panel's time limit of ten seconds, and the pause before the next attempt.
      await fixture.clock.untilAsleep(2)
      fixture.clock.advance(by: .milliseconds(9_900))
      await fixture.clock.untilAsleep(2)
      #expect(fixture.panel.prompts.count == 1)
      fixture.clock.advance(by: .milliseconds(100))
      await fixture.panel.until(challenges: 2)
      let ofSecond = fixture.panel.shown.lastIndex(of: .confirmationWanted)
      #expect(
        ofSecond.map { fixture.panel.shown[..<$0].suffix(1) } == [.anotherRequest],
        "the end of the first was not shown: the user may still be about to hold for it")
      #expect(unsettled(fixture) == [HandlerFixture.transaction(1)])
      fixture.panel.perform(deny)
      try await eventually("an outcome") { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(2)).isEmpty }
      // Without another request, the unknown outcome is shown again.
      await fixture.panel.until(showing: .outcomeUnknown)
      #expect(first(fixture).isEmpty)
      fixture.server.mend("deliver")
      await fixture.pass { !first(fixture).isEmpty }
      await fixture.panel.until(showing: .idle(pending: 0))
      #expect(first(fixture) == ["approved, receipt receipt-1"])
      #expect(
        fixture.stateStore.outcomes(of: HandlerFixture.transaction(2)) == ["denied (declined), receipt receipt-1"])
      #expect(Set(fixture.server.delivered.map(\.idempotencyKey)) == [numberedUUID(1)])
      #expect(fixture.otherServer.delivered.count == 1)
      #expect(fixture.server.calls(of: "status") == 0, "no status query about an answer that is still being sent")
      #expect(unsettled(fixture) == [])
      #expect(fixture.panel.shown.suffix(2) == [.confirmed, .idle(pending: 0)], "the panel was free for it")
    }
  }

  @Test("What ends under another request is not taken for its end")
  func whatEndsUnderAnotherRequestIsNotTakenForItsEnd() async throws {
    try await withAnswerUnderway { fixture in
      fixture.announceElsewhere(fixture.request(2, of: fixture.otherServer, lives: .seconds(600)))
      await fixture.pass { fixture.panel.prompts.count == 2 }
      fixture.server.mend("deliver")
      await fixture.pass { !first(fixture).isEmpty }
      // The audit entry is written slightly before the ending.
      for _ in 0..<1000 { await Task.yield() }
      fixture.announceElsewhere()
      await fixture.panel.until(showing: .idle(pending: 0))
      #expect(first(fixture) == ["approved, receipt receipt-1"])
      #expect(!fixture.panel.shown.contains(.confirmed))
      #expect(
        fixture.events.all.contains {
          if case .audited(let entry) = $0 { entry.detail == "approved, receipt receipt-1" } else { false }
        })
    }
  }

  @Test("The same servers requests wait") func theSameServersRequestsWait() async throws {
    try await withAnswerUnderway { fixture in
      let one = fixture.request(1, lives: .seconds(600))
      fixture.announce(one, fixture.request(2, sentAt: 2000, lives: .seconds(600)))
      await fixture.pass { fixture.server.delivered.count >= 6 }
      #expect(fixture.panel.prompts.count == 1)
      fixture.server.mend("deliver")
      await fixture.pass { fixture.panel.prompts.count == 2 }
      #expect(first(fixture) == ["approved, receipt receipt-1"])
    }
  }

  @Test("A PIN found wrong late is asked for again") func aPINFoundWrongLateIsAskedForAgain() async throws {
    let challenge = Challenge.pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0)))
    try await withAnswerUnderway(to: challenge, by: .typed("13579")) { fixture in
      await fixture.pass { fixture.server.delivered.count >= 6 }
      fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
      await fixture.pass { fixture.panel.prompts.count == 2 }
      #expect(fixture.panel.shown.contains(.pinWrong(remaining: 2)))
      #expect(unsettled(fixture) == [])
      fixture.server.mend("deliver")
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
      #expect(first(fixture) == ["denied (declined), receipt receipt-1"])
      #expect(Set(fixture.server.delivered.map(\.idempotencyKey)) == [numberedUUID(1), numberedUUID(2)])
    }
  }

  @Test("The requests time bounds it") func theRequestsTimeBoundsIt() async throws {
    try await withAnswerUnderway(lives: .seconds(40)) { fixture in
      fixture.server.breakDown("status", .unreachable("down"))
      let announced = fixture.clock.now
      await fixture.pass { !first(fixture).isEmpty }
      #expect(fixture.clock.now - announced >= .seconds(40))
      #expect(first(fixture) == ["unknown: the token server did not confirm the answer in time"])
      let sent = fixture.server.delivered.count
      await fixture.pass { fixture.server.calls(of: "status") > 0 }
      #expect(fixture.server.delivered.count == sent)
      #expect(unsettled(fixture)?.count == 1, "to be asked about")
    }
  }

  @Test("Stopping the token leaves the request pending") func stoppingTheTokenLeavesTheRequestPending()
    async throws
  {
    let fixture = HandlerFixture()
    fixture.server.breakDown("deliver", .unreachable("down"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.pass { fixture.server.delivered.count >= 6 }
    }
    fixture.server.mend("deliver")
    let sent = fixture.server.delivered.count
    fixture.clock.advance(by: .seconds(30))
    for _ in 0..<1000 { await Task.yield() }
    #expect(fixture.server.delivered.count == sent, "nothing outlives the handler")
    #expect(unsettled(fixture) == [HandlerFixture.transaction(1)])
    #expect(first(fixture).isEmpty)
  }

  @Test("A loss found late is carried out") func aLossFoundLateIsCarriedOut() async throws {
    try await withAnswerUnderway { fixture in
      fixture.announceElsewhere(fixture.request(2, of: fixture.otherServer, lives: .seconds(600)))
      await fixture.pass { fixture.panel.prompts.count == 2 }
      fixture.server.breakDown("deliver", .disenrolled)
      await fixture.pass { fixture.events.all.contains(.rosterChanged) }
      #expect(fixture.stateStore.droppedKeys == [AccountID("A")])
      #expect(first(fixture).count == 1 && first(fixture)[0].hasPrefix("not approved"))
    }
  }

  @Test("A disk that fails late is said") func aDiskThatFailsLateIsSaid() async throws {
    try await withAnswerUnderway { fixture in
      await fixture.pass { fixture.server.delivered.count >= 6 }
      // At the end of the delivery, and by the handler.
      for write in 1...2 { fixture.stateStore.fail(write: write, with: .io(call: "write", reason: "disk full")) }
      fixture.server.mend("deliver")
      await fixture.pass {
        fixture.events.all.contains(.stateStoreFailed(.io(call: "write", reason: "disk full")))
      }
      await fixture.panel.until(showing: .seeLog)
      // After a crash the server is queried.
      #expect(fixture.stateStore.durableIntents.count == 1)
      // The disk has space again.
      await fixture.pass { fixture.stateStore.durableIntents.isEmpty }
      #expect(fixture.stateStore.durableAudit == fixture.stateStore.audit)
    }
  }

  @Test("A server that cannot be reached makes way") func aServerThatCannotBeReachedMakesWay() async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      fixture.server.breakDown("open", .unreachable("down"))
      fixture.announce(fixture.request(1, sentAt: 2000))
      await fixture.panel.until(showing: .disconnected)
      fixture.announceElsewhere(fixture.request(2, of: fixture.otherServer, sentAt: 1000))
      fixture.inbox.connectivity.set(.disconnected, to: fixture.server.id)
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      try await eventually("an outcome") { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(2)).isEmpty }
      #expect(fixture.otherServer.delivered.count == 1)
    }
  }
}
