// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Delivery of answers, from the gesture to the server's confirmation.
@Suite(.timeLimit(.minutes(5))) struct DeliveryTests {
  @Test("A lost response is asked for under the same key") func aLostResponseIsAskedForUnderTheSameKey() async throws {
    let fixture = HandlerFixture()
    fixture.server.fail("deliver", .unreachable("lost"), .unreachable("lost"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .outcomeUnknown)
      await fixture.pass { fixture.server.delivered.count == 3 }
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(Set(fixture.server.delivered.map(\.idempotencyKey)) == [numberedUUID(1)])
    #expect(fixture.server.delivered.count == 3)
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["approved, receipt receipt-1"])
  }

  @Test("Without an answer the outcome is unknown until the server is back")
  func withoutAnAnswerTheOutcomeIsUnknownUntilTheServerIsBack() async throws {
    let fixture = HandlerFixture()
    fixture.server.breakDown("deliver", .unreachable("down"))
    fixture.server.breakDown("status", .unreachable("down"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(5)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .outcomeUnknown)
      await fixture.pass { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
      let unsettled = try fixture.stateStore.unresolvedIntents()
      #expect(unsettled.count == 1)
      await fixture.panel.until(showing: .outcomeUnknown)
      let key = fixture.server.delivered[0].idempotencyKey
      fixture.server.set(
        status: RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: key),
        of: HandlerFixture.transaction(1))
      fixture.server.mend("status")
      fixture.announce()
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).last == "approved, receipt r")
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).first?.hasPrefix("unknown") == true)
    #expect(!fixture.panel.shown.contains(.confirmed))
  }

  @Test(
    "What a crash left behind is asked for first",
    arguments: [
      (RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: "mine"), "approved, receipt r"),
      (RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: nil), "approved elsewhere"),
      (RemoteStatus(state: .rejected), "denied elsewhere"),
      (RemoteStatus(state: .open), "not delivered: the request is still open"),
    ])
  func whatACrashLeftBehindIsAskedForFirst(status: RemoteStatus, outcome: String) async throws {
    let fixture = HandlerFixture()
    fixture.stateStore.plant(
      AnswerIntent(
        transaction: HandlerFixture.transaction(1), server: fixture.server.id, account: AccountID("A"),
        idempotencyKey: "mine",
        decision: .accept))
    fixture.server.set(status: status, of: HandlerFixture.transaction(1))
    try await fixture.withHandler {
      fixture.announce()
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == [outcome])
    #expect(try fixture.stateStore.unresolvedIntents().isEmpty)
    #expect(fixture.server.delivered.isEmpty)
  }

  /// A client that cannot be made now may be made in a later round.
  @Test(
    "An answer is kept for an enrolled server that has no client, and not for one that is gone",
    arguments: [true, false])
  func answerToAServerWithoutAClient(isEnrolled: Bool) async throws {
    let fixture = HandlerFixture()
    let intent = AnswerIntent(
      transaction: HandlerFixture.transaction(1), server: fixture.server.id, account: AccountID("A"),
      idempotencyKey: "mine", decision: .accept)
    fixture.stateStore.plant(intent)
    let handler = Handler(
      servers: [fixture.otherServer], enrolled: isEnrolled ? [fixture.server.id] : [], inbox: fixture.inbox,
      panelTasks: fixture.panelTasks, panel: fixture.panel, stateStore: fixture.stateStore, mustEnroll: false,
      in: fixture.environment)
    let running = Task { try await handler.run() }
    await fixture.panel.until(showing: .idle(pending: 0))
    running.cancel()
    _ = try? await running.finished()
    #expect(try fixture.stateStore.unresolvedIntents() == (isEnrolled ? [intent] : []))
    let outcomes = isEnrolled ? [] : ["permanently unknown: the token server is no longer enrolled"]
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == outcomes)
  }

  /// For a server without a status API, the stored bytes are sent again, whether or not the event channel is up.
  @Test("After a crash an answer is sent again where the server reports no outcome", arguments: [true, false])
  func afterACrashAnAnswerIsSentAgainWhereTheServerReportsNoOutcome(isTaken: Bool) async throws {
    let fixture = HandlerFixture()
    let intent = AnswerIntent(
      transaction: HandlerFixture.transaction(1), server: fixture.server.id, account: AccountID("A"),
      idempotencyKey: "mine",
      decision: .accept, body: [1, 2, 3])
    fixture.stateStore.plant(intent)
    fixture.server.breakDown("repeated", .unreachable("down"))
    try await fixture.withHandler {
      await fixture.pass { fixture.server.repeated.count >= 3 }
      await fixture.panel.until(showing: .outcomeUnknown)
      #expect((try? fixture.stateStore.unresolvedIntents()) == [intent])
      fixture.announceElsewhere(fixture.request(2, of: fixture.otherServer))
      await fixture.panel.until(challenges: 1)
      fixture.announceElsewhere()
      if isTaken {
        fixture.server.set(
          status: RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: "mine"),
          of: HandlerFixture.transaction(1))
        fixture.server.mend("repeated")
      } else {
        fixture.server.breakDown("repeated", .outcomeUnknown("it has expired"))
      }
      await fixture.pass { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
    }
    let outcome = isTaken ? "approved, receipt r" : "permanently unknown: it has expired (9001)"
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == [outcome])
    #expect(try fixture.stateStore.unresolvedIntents().isEmpty)
    #expect(Set(fixture.server.repeated) == [[1, 2, 3]] && fixture.server.calls(of: "status") == 0)
  }

  @Test("A new start continues with the same bytes") func newStartContinuesWithTheSameBytes() async throws {
    let fixture = HandlerFixture()
    fixture.server.resentAfterRestart()
    fixture.server.breakDown("deliver", .unreachable("down"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.pass { fixture.server.delivered.count >= 3 }
    }
    let bytes = try #require(fixture.server.delivered.first).body
    fixture.server.set(
      status: RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: numberedUUID(1)),
      of: HandlerFixture.transaction(1))
    fixture.announce()
    try await fixture.withHandler {
      try await eventually("an outcome") { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["approved, receipt r"])
    #expect(fixture.server.repeated == [bytes])
  }

  @Test("Nothing leaves if it cannot be written down first") func nothingLeavesIfItCannotBeWrittenDownFirst()
    async throws
  {
    let fixture = HandlerFixture()
    // The journal entry of the decision.
    fixture.stateStore.fail(write: 1, with: .io(call: "write", reason: "disk full"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(90)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .seeLog)
      #expect(fixture.server.delivered.isEmpty)
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .seconds(30))
      // The disk has space again; the user is asked again.
      await fixture.panel.until(challenges: 2)
    }
    #expect(fixture.events.all.contains(.stateStoreFailed(.io(call: "write", reason: "disk full"))))
  }

  @Test(
    "Every refusal has its local effect",
    arguments: [
      (TokenServerError.deviceDeregistered, "server"), (.userDeregistered, "account"), (.disenrolled, "keys"),
      (.notEnrolled, "keys"), (.requestNotFound, ""), (.answerInvalid("x"), ""), (.notHandleable("x"), ""),
      (.alreadyHandled(.rejected), ""), (.outdated("x"), ""), (.configurationInvalid("x"), ""),
      (.refused("x"), ""), (.notAuthenticated("x"), ""),
    ])
  func everyRefusalHasItsLocalEffect(fault: TokenServerError, effect: String) async throws {
    for step in ["open", "deliver"] {
      let fixture = HandlerFixture()
      fixture.server.fail(step, fault)
      try await fixture.withHandler {
        fixture.announce(fixture.request(1))
        if step == "deliver" {
          await fixture.panel.until(challenges: 1)
          fixture.panel.perform(accept)
        }
        try await eventually("an outcome") { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
        // The error is shown before the following idle state.
        let seen: Indication = effect.isEmpty ? .seeLog : .mustEnroll
        if case .alreadyHandled = fault {
        } else {
          try await eventually("\(seen) on the LED") { fixture.panel.shown.contains(seen) }
        }
        if !effect.isEmpty {
          try await eventually("the roster has changed") { fixture.events.all.contains(.rosterChanged) }
        }
      }
      #expect(fixture.stateStore.wipedServers == (effect == "server" ? [fixture.server.id] : []))
      #expect(fixture.stateStore.wipedAccounts == (effect == "account" ? [AccountID("A")] : []))
      #expect(fixture.stateStore.droppedKeys == (effect == "keys" ? [AccountID("A")] : []))
      #expect(!fixture.panel.shown.contains(.confirmed), "\(fault) at \(step)")
      #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).allSatisfy { !$0.hasPrefix("approved,") })
    }
  }

  /// Fails if a server that stops accepting the token turns an answer that may have arrived into "not approved".
  @Test("An answer that may have arrived stays in the journal when the server is stopped") func stoppedAfterAnAttempt()
    async throws
  {
    let fixture = HandlerFixture()
    fixture.server.fail("deliver", .unreachable("cut"), .configurationInvalid("who"))
    fixture.server.breakDown("status", .configurationInvalid("who"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.pass { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
      try await eventually("the error is shown") { fixture.panel.shown.contains(.seeLog) }
    }
    let outcomes = fixture.stateStore.outcomes(of: HandlerFixture.transaction(1))
    #expect(outcomes.count == 1 && outcomes[0].hasPrefix("unknown: ") && outcomes[0].hasSuffix("(10001)"))
    #expect(try fixture.stateStore.unresolvedIntents().map(\.transaction) == [HandlerFixture.transaction(1)])
    #expect(fixture.inbox.connectivity[fixture.server.id] == .stopped)
  }

  @Test("A request that the user canceled ends with its number") func canceledRequest() async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.gesture(Gesture(.cancelKeys, held: .zero)))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(
      fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == [
        "denied (cancelled), receipt receipt-1 (9006)"
      ])
  }

  @Test(
    "An account that was removed meanwhile is not a failure",
    arguments: [TokenServerError.deviceDeregistered, .userDeregistered, .disenrolled])
  func accountThatWasRemovedMeanwhileIsNotAFailure(fault: TokenServerError) async throws {
    let fixture = HandlerFixture()
    fixture.server.fail("open", fault)
    fixture.stateStore.failRemoval(with: .notFound(.account(AccountID("A"))))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      try await eventually("the roster has changed") { fixture.events.all.contains(.rosterChanged) }
    }
    #expect(!fixture.panel.shown.contains(.seeLog))
  }
}
