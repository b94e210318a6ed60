// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct PanelTests {
  private let clock = ManualClock()
  private let button = TestButton()
  private let indicator = TestIndicator()

  private func panel() -> FrontPanel {
    FrontPanel(button: button, indicator: indicator, clock: clock)
  }

  @Test("A hold after the guard time is delivered") func aHoldAfterTheGuardTimeIsDelivered() async throws {
    let panel = panel()
    let running = Task { await panel.run() }
    await panel.show(.confirmationWanted)
    let events = panel.events(for: .confirmation)
    clock.advance(by: .seconds(1))
    // The prompt is armed asynchronously, so the press is repeated until it is accepted.
    let holding = Task { [button, clock] in
      while !Task.isCancelled {
        button.continuation.yield(.down(.approve, clock.now))
        clock.advance(by: .seconds(1))
        button.continuation.yield(.up(clock.now))
        await Task.yield()
      }
    }
    var gesture: Gesture?
    for event in await events.elements(until: "the end of the prompt") {
      if case .gesture(let found) = event { gesture = found }
    }
    holding.cancel()
    #expect(gesture == Gesture(.hold, held: .seconds(1)))
    button.continuation.finish()
    try await running.finished()
    #expect(indicator.lit.last == .some(nil))
  }

  @Test("A press that ends with an unavailable line leaves no \"release to accept\" on the LED")
  func canceledPressLeavesNoIndication() async throws {
    let panel = panel()
    let running = Task { await panel.run() }
    await panel.show(.confirmationWanted)
    let events = panel.events(for: .confirmation)
    try await eventually("a prompt") { await panel.readiness != .nothingShown }
    clock.advance(by: .seconds(1))
    var iterator = events.makeAsyncIterator()
    button.continuation.yield(.down(.approve, clock.now))
    #expect(await iterator.next() == .touched)
    // The LED and the timer of the press.
    await clock.untilAsleep(2)
    clock.advance(by: .milliseconds(800))
    try await eventually("\"release to accept\" on the LED") { await panel.showing == .releaseToAccept }
    button.continuation.yield(.void("canceled"))
    try await eventually("the prompt on the LED") { await panel.showing == .confirmationWanted }
    button.continuation.finish()
    try await running.finished()
  }

  /// A wake-up for each edge of the blips, and none between them.
  @Test(
    "An idle panel sleeps from one edge of the LED to the next",
    arguments: [(0, [60, 10_000, 10_060, 20_000]), (2, [60, 300, 360, 10_000])])
  func idlePanelSleeps(pending: Int, edges: [Int64]) async throws {
    let keypad = KeypadChannel(clock: clock)
    let panel = FrontPanel(
      button: button, indicator: indicator, sounder: TestSounder(), keypad: keypad, clock: clock)
    let running = Task { await panel.run() }
    button.continuation.yield(.up(clock.now))
    await panel.show(.idle(pending: pending))
    for edge in edges {
      await clock.untilAsleep()
      for _ in 0..<50 { await Task.yield() }
      #expect(clock.sleeping == 1)
      #expect(clock.untilNextWakes.map { clock.now + $0 } == MonotonicInstant(uptime: .milliseconds(edge)))
      clock.advance(by: clock.untilNextWakes ?? .zero)
    }
    button.continuation.finish()
    try await running.finished()
  }

  @Test("A confirmation is played to its end") func aConfirmationIsPlayedToItsEnd() async throws {
    let panel = panel()
    let showing = Task { await panel.show(.confirmed) }
    await clock.untilAsleep(2)
    #expect(indicator.lit == [.green])
    clock.advance(by: .milliseconds(600))
    try await eventually("change 2 of the LED") { indicator.lit.count == 2 }
    clock.advance(by: .milliseconds(300))
    try await eventually("change 3 of the LED") { indicator.lit.count == 3 }
    clock.advance(by: .milliseconds(600))
    try await eventually("change 4 of the LED") { indicator.lit.count == 4 }
    clock.advance(by: .milliseconds(300))
    try await showing.finished()
    #expect(indicator.lit == [.green, nil, .green, nil])
  }

  @Test("Each of two equal outcomes is played") func twoEqualOutcomes() async throws {
    let panel = panel()
    for changes in [4, 8] {
      let showing = Task { await panel.show(.confirmed) }
      try await eventually("the outcome has begun") { indicator.lit.count == changes - 3 }
      for (change, pause) in [(2, 600), (1, 300), (0, 600)] {
        await clock.untilAsleep(2)
        clock.advance(by: .milliseconds(pause))
        try await eventually("change \(changes - change) of the LED") { indicator.lit.count == changes - change }
      }
      clock.advance(by: .milliseconds(300))
      try await showing.finished()
    }
    #expect(indicator.lit == [.green, nil, .green, nil, .green, nil, .green, nil])
  }

  /// It is played to its end the first time and does not delay callers when shown again.
  @Test("A failure is seen once") func aFailureIsSeenOnce() async throws {
    let panel = panel()
    let showing = Task { await panel.show(.seeLog) }
    // The LED, and the call of `show`.
    await clock.untilAsleep(2)
    #expect(indicator.lit == [.red])
    clock.advance(by: .milliseconds(2_500))
    try await showing.finished()
    // The LED, in the first flash of the next round.
    await clock.untilAsleep()
    let isOver = Mutex(false)
    Task {
      await panel.show(.seeLog)
      isOver.withLock { $0 = true }
    }
    try await eventually("the failure is shown again") { isOver.withLock { $0 } }
    // Five flashes and the next one: the pattern has not begun again.
    #expect(indicator.lit == [.red, nil, .red, nil, .red, nil, .red, nil, .red, nil, .red])
  }

  /// The user can choose an option only after it is completely shown.
  @Test("An option is shown to its end") func anOptionIsShownToItsEnd() async throws {
    let panel = panel()
    let showing = Task { await panel.show(.option([1, 0])) }
    let lit: [LEDColor?] = [nil, .violet, nil, .violet, nil]
    // Dark for 1 s, one blink, a dark step, a long blink, and a pause.
    for (index, milliseconds) in [1_000, 300, 1_500, 1_200].enumerated() {
      await clock.untilAsleep(2)
      #expect(indicator.lit == Array(lit.prefix(index + 1)))
      clock.advance(by: .milliseconds(milliseconds))
    }
    try await eventually("the whole option") { indicator.lit == lit }
    #expect(clock.untilNextWakes == .milliseconds(700))
    clock.advance(by: .milliseconds(700))
    try await showing.finished()
  }

  @Test("Whether digits can be typed is the boards and not the plugs")
  func whetherDigitsCanBeTypedIsTheBoardsAndNotThePlugs() async {
    #expect(!panel().canType)
    let keypad = KeypadChannel(clock: clock)
    let withKeypad = FrontPanel(button: button, indicator: indicator, keypad: keypad, clock: clock)
    keypad.keypadIsUnavailable("unplugged")
    #expect(withKeypad.canType)
  }

  @Test("Showing the same again does not stumble") func showingTheSameAgainDoesNotStumble() async {
    let panel = panel()
    await panel.show(.confirmationWanted)
    await panel.show(.confirmationWanted)
    #expect(indicator.lit == [.blue])
    await panel.show(.talkingToServer)
    #expect(indicator.lit == [.blue, .white])
  }

  @Test("A line that goes away is reported and forgets what was held")
  func aLineThatGoesAwayIsReportedAndForgetsWhatWasHeld() async throws {
    let panel = panel()
    let running = Task { await panel.run() }
    let events = panel.events(for: .confirmation)
    let losing = Task { [button] in
      while !Task.isCancelled {
        button.continuation.yield(.unavailable("line gone"))
        await Task.yield()
      }
    }
    let seen = await events.elements(until: "a dark LED") { $0 == .dark("line gone") }
    losing.cancel()
    #expect(seen.contains(.dark("line gone")))
    button.continuation.finish()
    try await running.finished()
  }
}

@Suite(.timeLimit(.minutes(5))) struct LEDTests {
  @Test("A pattern is a function of time alone", arguments: Indication.legend)
  func aPatternIsAFunctionOfTimeAlone(indication: Indication) {
    let pattern = indication.pattern
    var elapsed = Duration.zero
    for _ in 0..<40 {
      guard let next = pattern.nextChange(after: elapsed) else { break }
      #expect(next > elapsed)
      #expect(pattern.isLit(after: elapsed) == pattern.isLit(after: next - .milliseconds(1)))
      elapsed = next
    }
  }

  @Test("Idle blips as many times as requests wait at most five") func idleBlipsAsManyTimesAsRequestsWaitAtMostFive() {
    for (pending, blips) in [(0, 1), (1, 1), (3, 3), (5, 5), (9, 5)] {
      let pattern = Indication.idle(pending: pending).pattern
      let lit = (0..<10_000).filter {
        pattern.isLit(after: .milliseconds($0)) && ($0 == 0 || !pattern.isLit(after: .milliseconds($0 - 1)))
      }
      #expect(lit.count == blips)
      #expect(pattern.length == .seconds(10))
    }
  }

  @Test("An idle token sleeps for seconds") func anIdleTokenSleepsForSeconds() {
    let pattern = Indication.idle(pending: 0).pattern
    #expect(pattern.nextChange(after: .milliseconds(60)) == .seconds(10))
  }

  @Test("No two states look alike in color") func noTwoStatesLookAlikeInColor() {
    let looks = Indication.legend.map { "\($0.pattern)\($0.row.color)" }
    #expect(Set(looks).count == looks.count)
  }
}

@Suite(.timeLimit(.minutes(5))) struct CodePatternTests {
  /// The periods in which the LED is lit, in milliseconds from the beginning.
  private func flashes(of pattern: LEDPattern) -> [Range<Int>] {
    let lit = (0...Int(pattern.length.milliseconds)).map { pattern.isLit(after: .milliseconds($0)) }
    let starts = lit.indices.dropFirst().filter { lit[$0] && !lit[$0 - 1] }
    let ends = lit.indices.dropFirst().filter { !lit[$0] && lit[$0 - 1] }
    return zip(starts, ends).map { $0..<$1 }
  }

  /// A zero is visible and distinct from a one.
  @Test(
    "An option is spelled once",
    arguments: [
      ([4, 2], [300, 300, 300, 300, 300, 300]), ([0, 3], [1200, 300, 300, 300]), ([1, 0], [300, 1200]), ([0], [1200]),
    ])
  func anOptionIsSpelledOnce(digits: [Int], lengths: [Int]) {
    let flashes = flashes(of: Indication.option(digits).pattern)
    #expect(flashes.map(\.count) == lengths)
    #expect(flashes.first?.lowerBound == 1000)
    let pauses = zip(flashes, flashes.dropFirst()).map { $1.lowerBound - $0.upperBound }
    #expect(pauses.count { $0 > 1000 } == digits.count - 1)
  }

  /// A code is spelled twice, with `digit` blinks for each digit and a long blink for zero.
  @Test("A code is spelled twice", arguments: [([2, 0], 6), ([0, 0], 4), ([9, 9], 36), ([6, 3], 18)])
  func aCodeIsSpelledTwice(digits: [Int], flashes: Int) {
    let pattern = Indication.code(digits).pattern
    let length = Int(pattern.length.components.seconds * 1000) + 1000
    let starts = (1..<length).filter {
      pattern.isLit(after: .milliseconds($0)) && !pattern.isLit(after: .milliseconds($0 - 1))
    }
    #expect(starts.count == flashes)
    #expect(!pattern.isLit(after: .zero) && !pattern.isLit(after: pattern.length))
  }
}
