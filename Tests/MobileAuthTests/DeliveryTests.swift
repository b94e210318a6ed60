// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Delivery of answers, from the gesture to the server's confirmation.
@Suite(.timeLimit(.minutes(5))) struct DeliveryTests {
  @Test func aLostResponseIsAskedForUnderTheSameKey() async throws {
    let world = World()
    world.server.fail("deliver", .unreachable("lost"), .unreachable("lost"))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(600)))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(showing: .outcomeUnknown)
      await world.pass { world.server.delivered.count == 3 }
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(Set(world.server.delivered.map(\.idempotencyKey)) == ["key-1"])
    #expect(world.server.delivered.count == 3)
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["approved, receipt receipt-1"])
  }

  @Test func withoutAnAnswerTheOutcomeIsUnknownUntilTheServerIsBack() async throws {
    let world = World()
    world.server.breakDown("deliver", .unreachable("down"))
    world.server.breakDown("status", .unreachable("down"))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(5)))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(showing: .outcomeUnknown)
      await world.pass { !world.custody.outcomes(of: World.transaction(1)).isEmpty }
      let unsettled = try world.custody.unsettledIntents()
      #expect(unsettled.count == 1)
      await world.panel.until(showing: .outcomeUnknown)
      let key = world.server.delivered[0].idempotencyKey
      world.server.set(
        status: RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: key), of: World.transaction(1))
      world.server.mend("status")
      world.announce()
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.outcomes(of: World.transaction(1)).last == "approved, receipt r")
    #expect(world.custody.outcomes(of: World.transaction(1)).first?.hasPrefix("unknown") == true)
    #expect(!world.panel.shown.contains(.confirmed))
  }

  @Test(arguments: [
    (RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: "mine"), "approved, receipt r"),
    (RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: nil), "approved elsewhere"),
    (RemoteStatus(state: .rejected), "denied elsewhere"),
    (RemoteStatus(state: .open), "not delivered: the request is still open"),
  ])
  func whatACrashLeftBehindIsAskedForFirst(status: RemoteStatus, outcome: String) async throws {
    let world = World()
    world.custody.plant(
      AnswerIntent(
        transaction: World.transaction(1), server: world.server.id, account: AccountID("A"), idempotencyKey: "mine",
        decision: .accept))
    world.server.set(status: status, of: World.transaction(1))
    try await world.withHandler {
      world.announce()
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == [outcome])
    #expect(try world.custody.unsettledIntents().isEmpty)
    #expect(world.server.delivered.isEmpty)
  }

  /// For a server without a status API, the stored bytes are sent again, whether or not the event channel is up.
  @Test(arguments: [true, false])
  func whatACrashLeftBehindIsSentAgainWhereNobodyTells(isTaken: Bool) async throws {
    let world = World()
    let intent = AnswerIntent(
      transaction: World.transaction(1), server: world.server.id, account: AccountID("A"), idempotencyKey: "mine",
      decision: .accept, body: [1, 2, 3])
    world.custody.plant(intent)
    world.server.breakDown("repeated", .unreachable("down"))
    try await world.withHandler {
      await world.pass { world.server.repeated.count >= 3 }
      await world.panel.until(showing: .outcomeUnknown)
      #expect((try? world.custody.unsettledIntents()) == [intent])
      world.announceElsewhere(world.request(2, of: world.otherServer))
      await world.panel.until(challenges: 1)
      world.announceElsewhere()
      if isTaken {
        world.server.set(
          status: RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: "mine"), of: World.transaction(1))
        world.server.mend("repeated")
      } else {
        world.server.breakDown("repeated", .outcomeUnknown("its time is over"))
      }
      await world.pass { !world.custody.outcomes(of: World.transaction(1)).isEmpty }
    }
    let outcome = isTaken ? "approved, receipt r" : "permanently unknown: its time is over (9001)"
    #expect(world.custody.outcomes(of: World.transaction(1)) == [outcome])
    #expect(try world.custody.unsettledIntents().isEmpty)
    #expect(Set(world.server.repeated) == [[1, 2, 3]] && world.server.calls(of: "status") == 0)
  }

  @Test func whoeverBeginsAnewGoesOnWithTheSameBytes() async throws {
    let world = World()
    world.server.repeatsAfterCut()
    world.server.breakDown("deliver", .unreachable("down"))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(600)))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.pass { world.server.delivered.count >= 3 }
    }
    let bytes = try #require(world.server.delivered.first).body
    world.server.set(
      status: RemoteStatus(state: .authenticated, receipt: "r", idempotencyKey: "key-1"), of: World.transaction(1))
    world.announce()
    try await world.withHandler {
      try await eventually { !world.custody.outcomes(of: World.transaction(1)).isEmpty }
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["approved, receipt r"])
    #expect(world.server.repeated == [bytes])
  }

  @Test func nothingLeavesIfItCannotBeWrittenDownFirst() async throws {
    let world = World()
    // announced, opened, then the journal entry of the decision.
    world.custody.fail(write: 3, with: .storage("disk full"))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(90)))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(showing: .misconfigured)
      #expect(world.server.delivered.isEmpty)
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .seconds(30))
      // The disk has space again; the user is asked again.
      await world.panel.until(challenges: 2)
    }
    #expect(world.recorder.events.contains(.custodyFailed(.storage("disk full"))))
  }

  @Test(arguments: [
    (TokenServerFault.deviceDeregistered, "server"), (.userDeregistered, "account"), (.disenrolled, "keys"),
    (.notEnrolled, "keys"), (.requestNotFound, ""), (.answerInvalid("x"), ""), (.notHandleable("x"), ""),
    (.alreadyHandled(.rejected), ""), (.outdated("x"), ""), (.configurationInvalid("x"), ""), (.clockWrong, ""),
    (.refused("x"), ""), (.notAuthenticated("x"), ""),
  ])
  func everyRefusalHasItsLocalEffect(fault: TokenServerFault, effect: String) async throws {
    for step in ["open", "deliver"] {
      let world = World()
      world.server.fail(step, fault)
      try await world.withHandler {
        world.announce(world.request(1))
        if step == "deliver" {
          await world.panel.until(challenges: 1)
          world.panel.perform(accept)
        }
        try await eventually { !world.custody.outcomes(of: World.transaction(1)).isEmpty }
        // The error is shown before the following idle state.
        let seen: Indication = effect.isEmpty ? .misconfigured : .mustEnrol
        if case .alreadyHandled = fault {} else { try await eventually { world.panel.shown.contains(seen) } }
        if !effect.isEmpty { try await eventually { world.recorder.events.contains(.rosterChanged) } }
      }
      #expect(world.custody.wipedServers == (effect == "server" ? [world.server.id] : []))
      #expect(world.custody.wipedAccounts == (effect == "account" ? [AccountID("A")] : []))
      #expect(world.custody.droppedKeys == (effect == "keys" ? [AccountID("A")] : []))
      #expect(!world.panel.shown.contains(.confirmed), "\(fault) at \(step)")
      #expect(world.custody.outcomes(of: World.transaction(1)).allSatisfy { !$0.hasPrefix("approved,") })
    }
  }

  @Test(arguments: [TokenServerFault.deviceDeregistered, .userDeregistered, .disenrolled])
  func whatSomebodyElseRemovedMeanwhileIsNotAFailure(fault: TokenServerFault) async throws {
    let world = World()
    world.server.fail("open", fault)
    // announced, settled, then the wipe, which finds nothing.
    world.custody.fail(write: 3, with: .unknown("account A"))
    try await world.withHandler {
      world.announce(world.request(1))
      try await eventually { world.recorder.events.contains(.rosterChanged) }
    }
    #expect(!world.panel.shown.contains(.misconfigured))
  }
}
