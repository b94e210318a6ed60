// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

/// A choice on a board without a keypad.
@Suite(.timeLimit(.minutes(5))) struct KeypadlessChoiceTests {
  private let world = World(canType: false)
  private static let counts = FailureCounts(max: 2, previous: 0)

  private func want(_ options: [String], pin: PINChallenge? = nil) throws {
    let challenge = try #require(ChoiceChallenge(options: options, counts: Self.counts, pin: pin))
    world.server.set(challenge: .choice(challenge))
  }

  private var blinked: [[Int]] {
    world.panel.shown.compactMap { if case .option(let digits) = $0 { digits } else { nil } }
  }

  private var timesStuck: Int { world.custody.audit.count { $0.kind == .buttonStuck } }

  private var troubles: [String] { world.custody.audit.filter { $0.kind == .panelUnavailable }.map(\.detail) }

  /// Runs one request with three numbers until it is answered.
  private func answering(_ body: () async throws -> Void) async throws {
    try want(["17", "40", "93"])
    try await world.withHandler {
      world.announce(world.request(1))
      try await body()
      await world.panel.until(showing: .idle(pending: 0))
    }
  }

  /// Blinks an option to its end; the option can then be chosen. The sleeping tasks are the request's deadline and the
  /// LED, then the window.
  private func blink() async {
    await world.timekeeper.untilAsleep(2)
    world.timekeeper.advance(by: ScriptedPanel.optionLength)
    await world.timekeeper.untilAsleep(2)
  }

  private func letTheWindowPass() { world.timekeeper.advance(by: Handler.choiceWindow) }

  /// Performs the event and waits until it was handled: the fault's audit entry is written only after earlier events.
  private func perform(_ event: PanelEvent, then trouble: String) async throws {
    world.panel.perform(event)
    world.panel.perform(.unavailable(trouble))
    try await eventually { troubles.contains(trouble) }
  }

  /// Waits until every task that can run has run.
  private func settle() async { for _ in 0..<100 { await Task.yield() } }

  @Test(
    arguments: [
      (["17", "40", "93"], 1, [[1, 7], [4, 0]], "40"), (["M", "H", "A"], 1, [[1], [2]], "H"),
      (["07", "70"], 2, [[0, 7], [7, 0], [0, 7]], "07"),
      ((1...10).map { "text \($0)" }, 9, (1...10).map { [$0 % 10] }, "text 10"),
    ] as [([String], Int, [[Int]], String)])
  func aHoldChoosesTheOptionThatWasShown(options: [String], passed: Int, shown: [[Int]], chosen: String) async throws {
    try want(options)
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(300)))
      for _ in 0..<passed {
        await blink()
        letTheWindowPass()
      }
      await blink()
      world.panel.perform(accept)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.server.choices == [chosen])
    #expect(blinked == shown)
    #expect(world.panel.prompts == shown.flatMap { _ in [Prompt.denial, .confirmation] })
    #expect(world.custody.audit.contains { $0.kind == .decided && $0.detail == "accept by choice, held 1000 ms" })
  }

  @Test(arguments: [deny, notMe], [false, true])
  func denyingIsPossibleAtAnyTime(event: PanelEvent, isOpen: Bool) async throws {
    try await answering {
      if isOpen { await blink() } else { await world.timekeeper.untilAsleep(2) }
      world.panel.perform(event)
    }
    #expect(world.server.delivered.map { $0.decision == .accept } == [false])
    #expect(world.server.choices == [nil])
    #expect(world.panel.prompts.last == (isOpen ? .confirmation : .denial))
  }

  /// Not all digits have been shown.
  @Test func aHoldWhileDigitsAreBlinkedChoosesNothing() async throws {
    try await answering {
      await world.timekeeper.untilAsleep(2)
      try await perform(accept, then: "settle")
      await blink()
      letTheWindowPass()
      await blink()
      world.panel.perform(accept)
    }
    #expect(world.server.choices == ["40"])
  }

  @Test func aFingerThatCameWhileDigitsWereBlinkedKeepsTheWindowShut() async throws {
    try await answering {
      await world.timekeeper.untilAsleep(2)
      try await perform(.touched, then: "settle")
      world.timekeeper.advance(by: ScriptedPanel.optionLength)
      await settle()
      #expect(world.panel.prompts == [.denial])
      world.panel.perform(.released)
      await world.panel.until(challenges: 2)
      world.panel.perform(deny)
    }
    #expect(world.server.choices == [nil])
  }

  @Test func aHoldThatOutlastsTheWindowKeepsItsOption() async throws {
    try await answering {
      await blink()
      try await perform(.touched, then: "settle")
      letTheWindowPass()
      await settle()
      #expect(blinked == [[1, 7]])
      world.panel.perform(accept)
    }
    #expect(world.server.choices == ["17"])
  }

  @Test func aTouchThatWasNoGestureLetsTheNextOptionCome() async throws {
    try await answering {
      await blink()
      try await perform(.touched, then: "settle")
      letTheWindowPass()
      world.panel.perform(.released)
      await blink()
      world.panel.perform(accept)
    }
    #expect(blinked == [[1, 7], [4, 0]])
    #expect(world.server.choices == ["40"])
  }

  /// The LED shows that the button is stuck in place of the digits. The fault is recorded once, however often it is
  /// reported.
  @Test func anOptionThatCouldNotBeSeenIsNotOpened() async throws {
    try await answering {
      await world.timekeeper.untilAsleep(2)
      world.panel.perform(.stuck)
      try await eventually { timesStuck != 0 }
      world.timekeeper.advance(by: ScriptedPanel.optionLength)
      await world.timekeeper.untilAsleep(2)
      try await perform(.stuck, then: "settle")
      world.timekeeper.advance(by: ScriptedPanel.optionLength)
      await world.panel.until(challenges: 3)
      world.panel.perform(deny)
    }
    #expect(world.panel.prompts == [.denial, .denial, .denial])
    #expect(blinked == [[1, 7], [4, 0], [9, 3]])
    #expect(timesStuck == 1)
  }

  @Test func aRequestThatIsOverTakesTheOptionsWithIt() async throws {
    try want(["17", "40", "93"])
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(3)))
      await blink()
      world.timekeeper.advance(by: .seconds(2))
      await world.panel.until(showing: .idle(pending: 0))
      world.panel.perform(accept)
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["expired"])
    #expect(world.server.delivered.isEmpty && world.server.calls(of: "seal") == 0)
  }

  /// After a wrong choice the request stays on the panel, and the options are shown again in turn.
  @Test func aWrongChoiceIsAskedForAgain() async throws {
    try want(["17", "40", "93"])
    world.server.fail("deliver", .choiceIncorrect(FailureCounts(max: 2, previous: 1)))
    try await world.withHandler {
      world.announce(world.request(1))
      await blink()
      world.panel.perform(accept)
      await world.panel.until(challenges: 3)
      await blink()
      letTheWindowPass()
      await blink()
      world.panel.perform(accept)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.shown.contains(.pinWrong(remaining: 1)))
    #expect(world.server.choices == ["17", "40"])
  }

  @Test func whatAlsoWantsAPINCanOnlyBeDenied() async throws {
    try want(["17", "40"], pin: PINChallenge(length: 5, counts: Self.counts))
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      world.panel.perform(deny)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.prompts == [.digits(count: 2)] && blinked.isEmpty)
    #expect(world.server.choices == [nil])
  }
}
