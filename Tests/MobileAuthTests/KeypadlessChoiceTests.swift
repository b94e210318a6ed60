// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

/// A choice on a board without a keypad.
@Suite(.timeLimit(.minutes(5))) struct KeypadlessChoiceTests {
  private let fixture = HandlerFixture(canType: false)
  private static let counts = FailureCounts(max: 2, previous: 0)

  private func want(_ options: [String], pin: PINChallenge? = nil) throws {
    let challenge = try #require(ChoiceChallenge(options: options, counts: Self.counts, pin: pin))
    fixture.server.set(challenge: .choice(challenge))
  }

  private var blinked: [[Int]] {
    fixture.panel.shown.compactMap { if case .option(let digits) = $0 { digits } else { nil } }
  }

  private var timesStuck: Int { fixture.stateStore.audit.count { $0.kind == .buttonStuck } }

  private var troubles: [String] { fixture.stateStore.audit.filter { $0.kind == .panelUnavailable }.map(\.detail) }

  /// Runs one request with three numbers until it is answered.
  private func answering(_ body: () async throws -> Void) async throws {
    try want(["17", "40", "93"])
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      try await body()
      await fixture.panel.until(showing: .idle(pending: 0))
    }
  }

  /// Blinks an option to its end; the option can then be chosen. The sleeping tasks are the request's deadline and the
  /// LED, then the window.
  private func blink() async {
    await fixture.clock.untilAsleep(2)
    fixture.clock.advance(by: ScriptedPanel.optionLength)
    await fixture.clock.untilAsleep(2)
  }

  private func letTheWindowPass() { fixture.clock.advance(by: Handler.choiceWindow) }

  /// Performs the event and waits until it was handled: the fault's audit entry is written only after earlier events.
  private func perform(_ event: PanelEvent, then trouble: String) async throws {
    fixture.panel.perform(event)
    fixture.panel.perform(.unavailable(trouble))
    try await eventually("the trouble \"\(trouble)\"") { troubles.contains(trouble) }
  }

  /// Waits until every task that can run has run.
  private func settle() async { for _ in 0..<100 { await Task.yield() } }

  @Test(
    "A hold chooses the option that was shown",
    arguments: [
      (["17", "40", "93"], 1, [[1, 7], [4, 0]], "40"), (["M", "H", "A"], 1, [[1], [2]], "H"),
      (["07", "70"], 2, [[0, 7], [7, 0], [0, 7]], "07"),
      ((1...10).map { "text \($0)" }, 9, (1...10).map { [$0 % 10] }, "text 10"),
    ] as [([String], Int, [[Int]], String)])
  func aHoldChoosesTheOptionThatWasShown(options: [String], passed: Int, shown: [[Int]], chosen: String) async throws {
    try want(options)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(300)))
      for _ in 0..<passed {
        await blink()
        letTheWindowPass()
      }
      await blink()
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.choices == [chosen])
    #expect(blinked == shown)
    #expect(fixture.panel.prompts == shown.flatMap { _ in [Prompt.denial, .confirmation] })
    #expect(fixture.stateStore.audit.contains { $0.kind == .decided && $0.detail == "accept by choice, held 1000 ms" })
  }

  /// Fails if the blinks keep the user from the other requests, or if a short press chooses an option.
  @Test("A short press during the blinks shows the next request") func shortPress() async throws {
    try want(["17", "40", "93"])
    try await fixture.withHandler {
      fixture.announce([2, 1].map { fixture.request($0, lives: .seconds(300)) }, by: fixture.server)
      await fixture.panel.until(challenges: 1)
      for event in [PanelEvent.touched, .shortPress, .released] { fixture.panel.perform(event) }
      let next = HandlerFixture.transaction(1)
      await HandlerFixture.turn { fixture.inbox.panel.shown.request?.pending.transaction == next }
    }
    #expect(fixture.server.delivered.isEmpty && fixture.panel.shown.contains(.anotherRequest))
  }

  @Test("Denying is possible at any time", arguments: [deny, notMe], [false, true])
  func denyingIsPossibleAtAnyTime(event: PanelEvent, isOpen: Bool) async throws {
    try await answering {
      if isOpen { await blink() } else { await fixture.clock.untilAsleep(2) }
      fixture.panel.perform(event)
    }
    #expect(fixture.server.delivered.map { $0.decision == .accept } == [false])
    #expect(fixture.server.choices == [nil])
    #expect(fixture.panel.prompts.last == (isOpen ? .confirmation : .denial))
  }

  /// Not all digits have been shown.
  @Test("A hold while digits are blinked chooses nothing") func aHoldWhileDigitsAreBlinkedChoosesNothing() async throws
  {
    try await answering {
      await fixture.clock.untilAsleep(2)
      try await perform(accept, then: "settle")
      await blink()
      letTheWindowPass()
      await blink()
      fixture.panel.perform(accept)
    }
    #expect(fixture.server.choices == ["40"])
  }

  @Test("A finger that came while digits were blinked keeps the window shut")
  func aFingerThatCameWhileDigitsWereBlinkedKeepsTheWindowShut() async throws {
    try await answering {
      await fixture.clock.untilAsleep(2)
      try await perform(.touched, then: "settle")
      fixture.clock.advance(by: ScriptedPanel.optionLength)
      await settle()
      #expect(fixture.panel.prompts == [.denial])
      fixture.panel.perform(.released)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(deny)
    }
    #expect(fixture.server.choices == [nil])
  }

  @Test("A hold that outlasts the window keeps its option") func aHoldThatOutlastsTheWindowKeepsItsOption() async throws
  {
    try await answering {
      await blink()
      try await perform(.touched, then: "settle")
      letTheWindowPass()
      await settle()
      #expect(blinked == [[1, 7]])
      fixture.panel.perform(accept)
    }
    #expect(fixture.server.choices == ["17"])
  }

  @Test("A touch that was no gesture lets the next option come") func aTouchThatWasNoGestureLetsTheNextOptionCome()
    async throws
  {
    try await answering {
      await blink()
      try await perform(.touched, then: "settle")
      letTheWindowPass()
      fixture.panel.perform(.released)
      await blink()
      fixture.panel.perform(accept)
    }
    #expect(blinked == [[1, 7], [4, 0]])
    #expect(fixture.server.choices == ["40"])
  }

  /// The LED shows that the button is stuck in place of the digits. The fault is recorded once, however often it is
  /// reported.
  @Test("An option that could not be seen is not opened") func anOptionThatCouldNotBeSeenIsNotOpened() async throws {
    try await answering {
      await fixture.clock.untilAsleep(2)
      fixture.panel.perform(.stuck)
      try await eventually("a stuck button in the audit chain") { timesStuck != 0 }
      fixture.clock.advance(by: ScriptedPanel.optionLength)
      await fixture.clock.untilAsleep(2)
      try await perform(.stuck, then: "settle")
      fixture.clock.advance(by: ScriptedPanel.optionLength)
      await fixture.panel.until(challenges: 3)
      fixture.panel.perform(deny)
    }
    #expect(fixture.panel.prompts == [.denial, .denial, .denial])
    #expect(blinked == [[1, 7], [4, 0], [9, 3]])
    #expect(timesStuck == 1)
  }

  @Test("A request that is over takes the options with it") func aRequestThatIsOverTakesTheOptionsWithIt() async throws
  {
    try want(["17", "40", "93"])
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(3)))
      await blink()
      fixture.clock.advance(by: .seconds(2))
      await fixture.panel.until(showing: .idle(pending: 0))
      fixture.panel.perform(accept)
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["expired"])
    #expect(fixture.server.delivered.isEmpty && fixture.server.calls(of: "seal") == 0)
  }

  /// After a wrong choice the request stays on the panel, and the options are shown again in turn.
  @Test("A wrong choice is asked for again") func aWrongChoiceIsAskedForAgain() async throws {
    try want(["17", "40", "93"])
    fixture.server.fail("deliver", .choiceIncorrect(FailureCounts(max: 2, previous: 1)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await blink()
      fixture.panel.perform(accept)
      await fixture.panel.until(challenges: 3)
      await blink()
      letTheWindowPass()
      await blink()
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.shown.contains(.pinWrong(remaining: 1)))
    #expect(fixture.server.choices == ["17", "40"])
  }

  @Test("What also wants a PIN can only be denied") func whatAlsoWantsPINCanOnlyBeDenied() async throws {
    try want(["17", "40"], pin: PINChallenge(length: 5, counts: Self.counts))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.digits(count: 2)] && blinked.isEmpty)
    #expect(fixture.server.choices == [nil])
  }
}
