// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

@Suite(.timeLimit(.minutes(5))) struct PINTests {
  private let fixture = HandlerFixture()

  init() {
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
  }

  private func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

  @Test("The PIN is typed used once and confirmed") func thePINIsTypedUsedOnceAndConfirmed() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.digits(count: 5)])
    #expect(fixture.server.pins == [pin("13579")])
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["approved, receipt receipt-1"])
    #expect(fixture.stateStore.audit.contains { $0.kind == .decided && $0.detail == "accept by PIN" })
    #expect(fixture.events.all.contains(.counted(AccountID("A"), FailureCounts(max: 3, previous: 0))))
  }

  /// Only the PIN approves a request that requires it, whichever event the panel reports.
  @Test(
    "What is not the PIN accepts nothing",
    arguments: [accept, .typed("1357")])
  func whatIsNotThePINAcceptsNothing(event: PanelEvent) async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
    #expect(fixture.server.pins.isEmpty)
  }

  @Test("Denying needs no PIN", arguments: [deny, notMe, PanelEvent.gesture(Gesture(.cancelKeys, held: .zero))])
  func denyingNeedsNoPIN(event: PanelEvent) async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.allSatisfy { $0.decision != .accept } && fixture.server.delivered.count == 1)
    #expect(fixture.server.pins.isEmpty)
  }

  /// Without the indication, the user types the PIN again, for what was never shown.
  @Test("A request that has other signed texts after a wrong PIN is another request", arguments: ["Pay 1", "Pay 1000"])
  func otherTexts(text: String) async throws {
    fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    fixture.server.set(texts: VerifiedTexts(signedWith: .openPGP, type: "payment", message: "Pay 1"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.server.set(texts: VerifiedTexts(signedWith: .openPGP, type: "payment", message: text))
      fixture.panel.perform(.typed("00000"))
      await fixture.panel.until(challenges: 2)
    }
    let asked = fixture.panel.shown.filter { $0 == .pinWanted || $0 == .anotherRequest }
    #expect(asked == [.pinWanted] + (text == "Pay 1" ? [] : [.anotherRequest]) + [.pinWanted])
  }

  @Test("A wrong PIN is asked for again and nothing stays unsettled")
  func aWrongPINIsAskedForAgainAndNothingStaysUnsettled() async throws {
    fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await fixture.withHandler {
      let old = fixture.request(1, sentAt: 1000)
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("00000"))
      await fixture.panel.until(challenges: 2)
      let unsettled = try fixture.stateStore.unresolvedIntents()
      #expect(unsettled.isEmpty)
      // A newer request does not interrupt the second attempt.
      fixture.announce(old, fixture.request(2, sentAt: 2000))
      fixture.panel.perform(.stuck)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(challenges: 3)
    }
    #expect(fixture.panel.shown.contains(.pinWrong(remaining: 2)))
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [1, 1].map(HandlerFixture.transaction))
    #expect(Set(fixture.server.delivered.map(\.idempotencyKey)).count == 2)
    #expect(fixture.server.calls(of: "open") == 3)
    #expect(
      fixture.stateStore.audit.filter { $0.kind == .pinWrong }.map(\.detail) == ["2 of 3 attempts left"])
    #expect(fixture.events.all.contains(.counted(AccountID("A"), FailureCounts(max: 3, previous: 1))))
  }

  @Test("Network trouble costs no attempt and no second typing") func networkTroubleCostsNoAttemptAndNoSecondTyping()
    async throws
  {
    fixture.server.fail("deliver", .unreachable("cut"), .unreachable("cut"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .outcomeUnknown)
      await fixture.pass { fixture.server.delivered.count == 3 }
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.count == 3)
    #expect(Set(fixture.server.delivered.map(\.idempotencyKey)).count == 1)
    #expect(fixture.server.pins.count == 1)
  }

  @Test("The last wrong PIN wipes that account alone") func theLastWrongPINWipesThatAccountAlone() async throws {
    fixture.server.fail("deliver", .userDeregistered)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("00000"))
      try await eventually("the LED says to enroll") { fixture.panel.shown.contains(.mustEnroll) }
    }
    #expect(fixture.events.all.contains(.rosterChanged))
    #expect(fixture.stateStore.wipedAccounts == [AccountID("A")])
    #expect(fixture.stateStore.wipedServers.isEmpty)
  }

  @Test("Expiry comes also between two tries") func expiryComesAlsoBetweenTwoTries() async throws {
    fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("00000"))
      await fixture.panel.until(challenges: 2)
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .seconds(60))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["expired"])
  }
}

@Suite(.timeLimit(.minutes(5))) struct PanelTaskTests {
  private let fixture = HandlerFixture()

  private func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

  @Test("An panelTask comes before an untouched request and after a touched one")
  func aPanelTaskComesBeforeAnUntouchedRequestAndAfterATouchedOne() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      async let first = fixture.panelTasks.perform { panel in
        try await PanelDialog(panel, in: fixture.environment).currentPIN(length: 4)
      }
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("2468"))
      let typed = try await first
      #expect(typed == pin("2468"))
      await fixture.panel.until(challenges: 3)
      fixture.panel.perform(.touched)
      // The next event's audit entry is written after the touch was handled, so it shows that point without a clock.
      fixture.panel.perform(.unavailable("the keypad was unplugged"))
      try await eventually("the fault in the audit chain") {
        fixture.stateStore.audit.contains(where: { $0.kind == .panelUnavailable })
      }
      async let second: Void = fixture.panelTasks.perform { panel in
        try await PanelDialog(panel, in: fixture.environment).veryLongHold()
      }
      fixture.panel.perform(accept)
      await fixture.panel.until(challenges: 4)
      fixture.panel.perform(notMe)
      try await second
    }
    #expect(
      fixture.panel.prompts == [.confirmation, .digits(count: 4), .confirmation, .veryLongHold])
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["approved, receipt receipt-1"])
  }

  @Test("A new PIN is typed twice and keeps the rules") func aNewPINIsTypedTwiceAndKeepsTheRules() async throws {
    try await fixture.withHandler {
      async let chosen = fixture.panelTasks.perform { panel in
        try await PanelDialog(panel, in: fixture.environment).newPIN(length: 5) { pin in
          pin.digits.withExposedSecret { $0.first == UInt8(ascii: "1") } ? 2 : nil
        }
      }
      for (number, typed) in ["12345", "24680", "24681", "24680", "24680"].enumerated() {
        await fixture.panel.until(challenges: number + 1)
        fixture.panel.perform(.typed(typed))
      }
      let typed = try await chosen
      #expect(typed == pin("24680"))
    }
    #expect(
      fixture.panel.shown.filter { $0 != .idle(pending: 0) && $0 != .disconnected }.prefix(7) == [
        .newPINWanted(again: false), .pinRefused(rule: 2), .newPINWanted(again: false), .newPINWanted(again: true),
        .pinRefused(rule: 5), .newPINWanted(again: false), .newPINWanted(again: true),
      ])
  }

  @Test(
    "It ends when the user or the panel ends it",
    arguments: [
      (PanelEvent.gesture(Gesture(.cancelKeys, held: .zero)), PanelDialog.EntryError.canceled), (deny, .canceled),
      (.unavailable("the keypad is gone"), .panelUnavailable("the keypad is gone")),
      (.dark("the chip is gone"), .panelUnavailable("the chip is gone")),
    ])
  func itEndsWhenTheUserOrThePanelEndsIt(event: PanelEvent, ending: PanelDialog.EntryError) async throws {
    try await fixture.withHandler {
      let panelTask = fixture.startPINDialog()
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      await #expect(throws: ending) { try await panelTask.finished() }
    }
  }

  /// Fails if a PIN can be typed for an announcement that was not visible.
  @Test("A dialog whose announcement was dark announces itself again") func darkAnnouncement() async throws {
    try await fixture.withHandler {
      let panelTask = fixture.startPINDialog()
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.lit)
      fixture.panel.breakPrompt()
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.shown.suffix(2) == [.anotherRequest, .pinWanted])
      fixture.panel.perform(.typed("1357"))
      _ = try await panelTask.finished()
    }
  }

  @Test("A prompt ends after its time limit") func promptEndsAfterItsTimeLimit() async throws {
    try await fixture.withHandler {
      let panelTask = fixture.startPINDialog()
      await fixture.panel.until(challenges: 1)
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .seconds(120))
      await #expect(throws: PanelDialog.EntryError.timedOut) { try await panelTask.finished() }
    }
  }

  /// A task whose caller was canceled must not continue at the panel.
  @Test("A cancellation in the middle ends it") func cancellationInTheMiddleEndsIt() async throws {
    try await fixture.withHandler {
      let panelTask = Task {
        try await fixture.panelTasks.perform { panel in
          try await PanelDialog(panel, in: fixture.environment).veryLongHold()
        }
      }
      await fixture.panel.until(challenges: 1)
      panelTask.cancel()
      await #expect(throws: CancellationError.self) { try await panelTask.finished() }
      await fixture.panel.until(showing: .idle(pending: 0))
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 2)
    }
    #expect(fixture.panel.prompts == [.veryLongHold, .confirmation])
  }

  @Test("After a cancellation before its turn there is no prompt") func afterACancellationBeforeItsTurnThereIsNoPrompt()
    async throws
  {
    let panelTask = Task { try await fixture.panelTasks.perform { _ in Issue.record("it ran") } }
    panelTask.cancel()
    await #expect(throws: CancellationError.self) { try await panelTask.finished() }
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
    }
  }
}
