// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Secrets
import Testing

/// Ignored presses and keys are indicated.
@Suite(.timeLimit(.minutes(5))) struct IgnoredTests {
  private let clock = ManualClock()
  private let button = TestButton()
  private let indicator = TestIndicator()
  private let keypad: KeypadChannel
  private let digits = WatchedDigits()

  init() { keypad = KeypadChannel(clock: clock) }

  private func onPanel(_ body: (FrontPanel) async throws -> Void) async throws {
    let panel = FrontPanel(button: button, indicator: indicator, keypad: keypad, clock: clock)
    let running = Task { await panel.run() }
    try await body(panel)
    running.cancel()
    _ = try? await running.finished()
  }

  @Test(
    "A press without a prompt flickers, and the indication before it continues",
    arguments: [Indication.disconnected, .idle(pending: 0)])
  func pressWhileNothingIsAsked(shown: Indication) async throws {
    try await onPanel { panel in
      await panel.show(shown)
      #expect(await panel.readiness == .nothingShown)
      button.continuation.yield(.down(.approve, clock.now))
      try await eventually("the flicker") { await panel.showing == .ignored }
      await clock.untilAsleep(2)
      clock.advance(by: Indication.ignored.pattern.length)
      try await eventually("the former indication") { await panel.showing == shown }
    }
  }

  @Test("A press within the guard time flickers") func pressWithinTheGuardTime() async throws {
    try await onPanel { panel in
      await panel.show(.confirmationWanted)
      let events = panel.events(for: .confirmation)
      try await eventually("the guard time") { await panel.readiness == .guardTime }
      button.continuation.yield(.down(.approve, clock.now))
      try await eventually("the flicker") { await panel.showing == .ignored }
      clock.advance(by: .seconds(1))
      #expect(await panel.readiness == .counts)
      withExtendedLifetime(events) {}
    }
  }

  @Test("A hold where only a denial counts flickers", arguments: [Prompt.denial, .digits(count: 5)])
  func holdThatApprovesNothing(prompt: Prompt) async throws {
    try await onPanel { panel in
      await panel.show(.pinWanted)
      let events = panel.events(for: prompt)
      try await eventually("the guard time") { await panel.readiness == .guardTime }
      clock.advance(by: .seconds(1))
      button.continuation.yield(.down(.approve, clock.now))
      try await eventually("a timer of the press") { clock.sleeping > 0 }
      clock.advance(by: .milliseconds(900))
      button.continuation.yield(.up(clock.now))
      try await eventually("the flicker") { await panel.showing == .ignored }
      clock.advance(by: Indication.ignored.pattern.length)
      try await eventually("the prompt on the LED") { await panel.showing == .pinWanted }
      withExtendedLifetime(events) {}
    }
  }

  @Test("Keys during \"wrong PIN\" flicker once; it is played to its end") func keysWhileWrongPINBlinks() async throws {
    try await onPanel { panel in
      let wrong = Indication.pinWrong(remaining: 2)
      let showing = Task { await panel.show(wrong) }
      try await eventually("\"wrong PIN\" on the LED") { await panel.showing == wrong }
      clock.advance(by: .seconds(1))
      keypad.press(.digit(digits.make(0x31)))
      try await eventually("the flicker") { await panel.showing == .ignored }
      clock.advance(by: Indication.ignored.pattern.length)
      try await eventually("\"wrong PIN\" on the LED") { await panel.showing == wrong }
      keypad.press(.digit(digits.make(0x32)))
      try await eventually("the key is handled") { digits.count == 0 }
      // The indication is repeated once from its beginning.
      clock.advance(by: wrong.pattern.length - .milliseconds(1))
      for _ in 0..<1000 { await Task.yield() }
      #expect(await panel.showing == wrong)
      clock.advance(by: .milliseconds(1))
      try await showing.finished()
    }
  }

  /// Fails if a server can hold the panel with a long code.
  @Test("A press ends a code that has been played for 10 s, and repeats it before", arguments: [9, 11])
  func pressDuringCode(seconds: Int) async throws {
    try await onPanel { panel in
      let code = Indication.code([9, 9, 9, 9, 9, 9, 9, 9])
      let showing = Task { await panel.show(code) }
      try await eventually("the code on the LED") { await panel.showing == code }
      await clock.untilAsleep()
      clock.advance(by: .seconds(seconds))
      keypad.press(.digit(digits.make(0x31)))
      if seconds < 10 {
        try await eventually("the flicker") { await panel.showing == .ignored }
        clock.advance(by: .seconds(11))
        try await eventually("the code on the LED") { await panel.showing == code }
        keypad.press(.digit(digits.make(0x32)))
      }
      try await showing.finished()
    }
  }

  @Test("While several requests are open, the prompt's pattern is interrupted by their number", arguments: [2, 5, 9])
  func interruption(count: Int) {
    for indication in [Indication.confirmationWanted, .pinWanted, .numberWanted] {
      let pattern = indication.pattern(openRequests: count)
      let lit = (0..<Int(pattern.length.milliseconds)).map { pattern.isLit(after: .milliseconds($0)) }
      let begins = lit.indices.filter { lit[$0] && ($0 == 0 || !lit[$0 - 1]) }
      let pauses = zip(begins, begins.dropFirst()).filter { begin, next in
        lit[begin..<next].count { !$0 } >= 1_000
      }
      // After about 4 s, and dark for 1 s or more before the blinks that give the number.
      let dark = pauses.last?.1 ?? 0
      #expect((4_500...6_500).contains(dark), "\(indication)")
      #expect(begins.count { $0 >= dark } == min(count, 5), "\(indication)")
      #expect(indication.pattern(openRequests: 1) == indication.pattern)
    }
    #expect(Indication.option([1]).pattern(openRequests: count) == Indication.option([1]).pattern)
  }

  @Test("A request during the prompt of another changes the pattern at once") func countChanges() async throws {
    try await onPanel { panel in
      await panel.show(.confirmationWanted)
      await panel.note(openRequests: 3)
      // To the end of the fourth second, and then dark for 1 s.
      for _ in 0..<8 {
        await clock.untilAsleep()
        clock.advance(by: clock.untilNextWakes ?? .zero)
        for _ in 0..<100 { await Task.yield() }
      }
      try await eventually("a blink of 80 ms") { clock.untilNextWakes == .milliseconds(80) }
      #expect(clock.now == MonotonicInstant(uptime: .seconds(5)))
    }
  }
}
