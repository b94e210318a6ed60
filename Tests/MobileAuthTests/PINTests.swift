// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

@Suite(.timeLimit(.minutes(5))) struct PINTests {
  private let world = World()

  init() {
    world.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
  }

  private func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

  @Test func thePINIsTypedUsedOnceAndConfirmed() async throws {
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(.entered(pin("13579")))
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.prompts == [.digits(count: 5)])
    #expect(world.server.pins == [pin("13579")])
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["approved, receipt receipt-1"])
    #expect(world.custody.audit.contains { $0.kind == .decided && $0.detail == "accept by PIN" })
    #expect(world.recorder.events.contains(.counted(AccountID("A"), FailureCounts(max: 3, previous: 0))))
  }

  /// Only the PIN approves a request that requires it, whichever event the panel reports.
  @Test(arguments: [accept, .entered(PIN(digits: SecretBytes(copying: Array("1357".utf8))))])
  func whatIsNotThePINAcceptsNothing(event: PanelEvent) async throws {
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(event)
      world.panel.perform(deny)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.server.delivered.map(\.decision) == [.deny(.declined)])
    #expect(world.server.pins.isEmpty)
  }

  @Test(arguments: [deny, notMe, PanelEvent.gesture(Gesture(.cancelKeys, held: .zero))])
  func denyingNeedsNoPIN(event: PanelEvent) async throws {
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(event)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.server.delivered.allSatisfy { $0.decision != .accept } && world.server.delivered.count == 1)
    #expect(world.server.pins.isEmpty)
  }

  @Test func aWrongPINIsAskedForAgainAndNothingStaysUnsettled() async throws {
    world.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await world.withHandler {
      let old = world.request(1, sentAt: 1000)
      world.announce(old)
      await world.panel.until(challenges: 1)
      world.panel.perform(.entered(pin("00000")))
      await world.panel.until(challenges: 2)
      let unsettled = try world.custody.unsettledIntents()
      #expect(unsettled.isEmpty)
      // A newer request does not interrupt the second attempt.
      world.announce(old, world.request(2, sentAt: 2000))
      world.panel.perform(.stuck)
      await world.panel.until(challenges: 2)
      world.panel.perform(.entered(pin("13579")))
      await world.panel.until(challenges: 3)
    }
    #expect(world.panel.shown.contains(.pinWrong(remaining: 2)))
    #expect(world.server.delivered.map(\.request.pending.transaction) == [1, 1].map(World.transaction))
    #expect(Set(world.server.delivered.map(\.idempotencyKey)).count == 2)
    #expect(world.server.calls(of: "open") == 3)
    #expect(
      world.custody.audit.filter { $0.kind == .pinWrong }.map(\.detail) == ["2 of 3 attempts left"])
    #expect(world.recorder.events.contains(.counted(AccountID("A"), FailureCounts(max: 3, previous: 1))))
  }

  @Test func networkTroubleCostsNoAttemptAndNoSecondTyping() async throws {
    world.server.fail("deliver", .unreachable("cut"), .unreachable("cut"))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(600)))
      await world.panel.until(challenges: 1)
      world.panel.perform(.entered(pin("13579")))
      await world.panel.until(showing: .outcomeUnknown)
      await world.pass { world.server.delivered.count == 3 }
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.server.delivered.count == 3)
    #expect(Set(world.server.delivered.map(\.idempotencyKey)).count == 1)
    #expect(world.server.pins.count == 1)
  }

  @Test func theLastWrongPINWipesThatAccountAlone() async throws {
    world.server.fail("deliver", .userDeregistered)
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(.entered(pin("00000")))
      try await eventually { world.panel.shown.contains(.mustEnrol) }
    }
    #expect(world.recorder.events.contains(.rosterChanged))
    #expect(world.custody.wipedAccounts == [AccountID("A")])
    #expect(world.custody.wipedServers.isEmpty)
  }

  @Test func expiryComesAlsoBetweenTwoTries() async throws {
    world.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(.entered(pin("00000")))
      await world.panel.until(challenges: 2)
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .seconds(60))
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["expired"])
  }
}

@Suite(.timeLimit(.minutes(5))) struct ErrandTests {
  private let world = World()

  private func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

  @Test func anErrandComesBeforeAnUntouchedRequestAndAfterATouchedOne() async throws {
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      async let first = world.errands.perform { panel in
        try await PanelDialogue(panel, timekeeper: world.timekeeper).currentPIN(length: 4)
      }
      await world.panel.until(challenges: 2)
      world.panel.perform(.entered(pin("2468")))
      let typed = try await first
      #expect(typed == pin("2468"))
      await world.panel.until(challenges: 3)
      world.panel.perform(.touched)
      // The next event's audit entry is written after the touch was handled, so it shows that point without a clock.
      world.panel.perform(.unavailable("the keypad was unplugged"))
      try await eventually { world.custody.audit.contains(where: { $0.kind == .panelUnavailable }) }
      async let second: Void = world.errands.perform { panel in
        try await PanelDialogue(panel, timekeeper: world.timekeeper).veryLongHold()
      }
      world.panel.perform(accept)
      await world.panel.until(challenges: 4)
      world.panel.perform(notMe)
      try await second
    }
    #expect(
      world.panel.prompts == [.confirmation, .digits(count: 4), .confirmation, .veryLongHold])
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["approved, receipt receipt-1"])
  }

  @Test func aNewPINIsTypedTwiceAndKeepsTheRules() async throws {
    try await world.withHandler {
      async let chosen = world.errands.perform { panel in
        try await PanelDialogue(panel, timekeeper: world.timekeeper).newPIN(length: 5) { pin in
          pin.digits.withExposedSecret { $0.first == UInt8(ascii: "1") } ? 2 : nil
        }
      }
      for (number, typed) in ["12345", "24680", "24681", "24680", "24680"].enumerated() {
        await world.panel.until(challenges: number + 1)
        world.panel.perform(.entered(pin(typed)))
      }
      let typed = try await chosen
      #expect(typed == pin("24680"))
    }
    #expect(
      world.panel.shown.filter { $0 != .idle(pending: 0) && $0 != .disconnected }.prefix(7) == [
        .newPINWanted(again: false), .pinRefused(rule: 2), .newPINWanted(again: false), .newPINWanted(again: true),
        .pinRefused(rule: 5), .newPINWanted(again: false), .newPINWanted(again: true),
      ])
  }

  @Test(arguments: [
    (PanelEvent.gesture(Gesture(.cancelKeys, held: .zero)), PanelDialogue.Ending.cancelled), (deny, .cancelled),
    (.unavailable("the keypad is gone"), .panelUnavailable("the keypad is gone")),
  ])
  func itEndsWhereThePersonOrThePanelEndsIt(event: PanelEvent, ending: PanelDialogue.Ending) async throws {
    try await world.withHandler {
      let errand = Task {
        try await world.errands.perform { panel in
          try await PanelDialogue(panel, timekeeper: world.timekeeper).currentPIN(length: 4)
        }
      }
      await world.panel.until(challenges: 1)
      world.panel.perform(event)
      await #expect(throws: ending) { try await errand.value }
    }
  }

  @Test func nobodyFindsThePanelStillWaiting() async throws {
    try await world.withHandler {
      let errand = Task {
        try await world.errands.perform { panel in
          try await PanelDialogue(panel, timekeeper: world.timekeeper).currentPIN(length: 4)
        }
      }
      await world.panel.until(challenges: 1)
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .seconds(120))
      await #expect(throws: PanelDialogue.Ending.timedOut) { try await errand.value }
    }
  }

  /// A task whose caller was canceled must not continue at the panel.
  @Test func whoeverGivesUpInTheMiddleEndsIt() async throws {
    try await world.withHandler {
      let errand = Task {
        try await world.errands.perform { panel in
          try await PanelDialogue(panel, timekeeper: world.timekeeper).veryLongHold()
        }
      }
      await world.panel.until(challenges: 1)
      errand.cancel()
      await #expect(throws: CancellationError.self) { try await errand.value }
      await world.panel.until(showing: .idle(pending: 0))
      world.announce(world.request(1))
      await world.panel.until(challenges: 2)
    }
    #expect(world.panel.prompts == [.veryLongHold, .confirmation])
  }

  @Test func whoeverGivesUpBeforeTheirTurnIsNotAsked() async throws {
    let errand = Task { try await world.errands.perform { _ in Issue.record("it ran") } }
    errand.cancel()
    await #expect(throws: CancellationError.self) { try await errand.value }
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
    }
  }
}
