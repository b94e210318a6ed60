// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Secrets
import Testing

@Suite(.timeLimit(.minutes(5))) struct EntryPanelTests {
  let clock = ManualClock()
  let button = TestButton()
  let indicator = TestIndicator()
  let keypad: KeypadChannel
  let digits = WatchedDigits()

  init() { keypad = KeypadChannel(clock: clock) }

  typealias Events = AsyncStream<PanelEvent>.Iterator

  func onPanel(
    feedback: EntrySettings.Feedback = .entering, hasKeypad: Bool = true,
    _ body: (FrontPanel) async throws -> Void
  ) async throws {
    var settings = EntrySettings()
    settings.feedback = feedback
    let panel = FrontPanel(
      button: button, indicator: indicator, keypad: hasKeypad ? keypad : nil, clock: clock, entry: settings)
    let running = Task { await panel.run() }
    await panel.show(.pinWanted)
    try await body(panel)
    running.cancel()
    try await running.finished()
  }

  /// Arms a prompt for five digits and advances past the guard time. An unavailable keypad is reported exactly once,
  /// when or after the prompt is armed, so the test then knows that it is armed.
  func armedPrompt(_ panel: FrontPanel, _ prompt: Prompt = .digits(count: 5)) async -> AsyncStream<PanelEvent> {
    keypad.keypadIsUnavailable("test")
    let stream = panel.events(for: prompt)
    var events = stream.makeAsyncIterator()
    #expect(await events.next() == .unavailable("keypad: test"))
    keypad.keypadIsAvailable()
    clock.advance(by: .seconds(1))
    return stream
  }

  /// The events of such a prompt.
  func armed(_ panel: FrontPanel, _ prompt: Prompt = .digits(count: 5)) async -> Events {
    await armedPrompt(panel, prompt).makeAsyncIterator()
  }

  /// Arms a prompt of a working keypad, and advances past the guard time.
  func ready(_ panel: FrontPanel, _ prompt: Prompt) async throws -> Events {
    let events = panel.events(for: prompt).makeAsyncIterator()
    try await eventually("a prompt") { await panel.readiness != .nothingShown }
    clock.advance(by: .seconds(1))
    return events
  }

  func type(_ keys: String) {
    for key in keys {
      switch key {
      case "E": keypad.press(.enter)
      case "D": keypad.press(.delete)
      case "X": keypad.press(.escape)
      default: keypad.press(.digit(digits.make(key.asciiValue!)))
      }
    }
  }

  func until(_ panel: FrontPanel, shows indication: Indication) async throws {
    try await eventually("\(indication) on the LED") { await panel.showing == indication }
  }

  @Test("Digits and enter are an entry and the last thing that happens")
  func digitsAndEnterAreAnEntryAndTheLastThingThatHappens() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      type("12D3579E99")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("13579"))
      #expect(await events.next() == nil)
      try await eventually("the digits are wiped") { digits.count == 0 }
    }
  }

  @Test("The first digit shows and its deletion hides again") func theFirstDigitShowsAndItsDeletionHidesAgain()
    async throws
  {
    try await onPanel { panel in
      var events = await armed(panel)
      type("1")
      #expect(await events.next() == .touched)
      #expect(await panel.showing == .entering)
      type("D")
      #expect(await events.next() == .released)
      #expect(await panel.showing == .pinWanted)
    }
  }

  @Test("A wrong number of digits is shown briefly and forgotten") func aWrongNumberOfDigitsIsShownBrieflyAndForgotten()
    async throws
  {
    try await onPanel { panel in
      var events = await armed(panel)
      type("1234E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .released)
      try await until(panel, shows: .pinRefused(rule: 4))
      // Each change of the LED is reported with what it shows then.
      #expect(indicator.contexts.first { $0.indication == .pinRefused(rule: 4) }?.entries == 1)
      await clock.untilAsleep(2)
      clock.advance(by: Indication.pinRefused(rule: 4).pattern.length)
      try await until(panel, shows: .pinWanted)
      type("56789E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("56789"))
    }
  }

  @Test("The LED status contains the number of preceding entries") func entriesAreCounted() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      #expect(await panel.ledContext.entries == 0)
      type("1234E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .released)
      #expect(await panel.ledContext.entries == 1)
      let former = await panel.keypadEvents
      type("56789E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("56789"))
      // No entry is requested anymore.
      type("1E")
      try await eventually("all keys are handled") { await panel.keypadEvents == former + 8 }
      #expect(await panel.ledContext.entries == 2)
    }
  }

  @Test("What is left typed is wiped") func whatIsLeftTypedIsWiped() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      type("1")
      #expect(await events.next() == .touched)
      // The LED and the idle timeout.
      await clock.untilAsleep(2)
      clock.advance(by: .seconds(30))
      #expect(await events.next() == .released)
      #expect(await panel.showing == .pinWanted)
      type("23456E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("23456"))
    }
  }

  @Test("Typing is reported where a prompt wants to know of it") func typingIsReported() async throws {
    try await onPanel { panel in
      var events = await armed(panel, .authenticator(orPINOf: 5, hold: false))
      type("1")
      #expect(await events.next() == .typing(true))
      #expect(await events.next() == .touched)
      type("D")
      #expect(await events.next() == .typing(false))
      #expect(await events.next() == .released)
    }
  }

  @Test("A keypad that is pulled out takes the entry with it") func aKeypadThatIsPulledOutTakesTheEntryWithIt()
    async throws
  {
    try await onPanel { panel in
      var events = await armed(panel)
      type("123")
      keypad.keypadIsUnavailable("unplugged")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .released)
      #expect(await events.next() == .unavailable("keypad: unplugged"))
      #expect(await panel.showing == .pinWanted)
      keypad.keypadIsAvailable()
      type("45678E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("45678"))
    }
  }

  @Test("A board without a keypad says so when digits are wanted") func aBoardWithoutAKeypadSaysSoWhenDigitsAreWanted()
    async throws
  {
    try await onPanel(hasKeypad: false) { panel in
      var events = panel.events(for: .digits(count: 5)).makeAsyncIterator()
      #expect(await events.next() == .unavailable("this board has no keypad"))
    }
  }

  @Test("The next prompt begins with nothing typed") func theNextPromptBeginsWithNothingTyped() async throws {
    try await onPanel { panel in
      var former = await armed(panel)
      type("123")
      #expect(await former.next() == .touched)
      // Without the unavailable keypad that `armed` uses: the previous prompt would receive that event.
      var events = panel.events(for: .digits(count: 5)).makeAsyncIterator()
      #expect(await former.next() == nil)
      // Digits in transit may be indicated as ignored.
      #expect(await panel.showing != .entering)
      clock.advance(by: .seconds(1))
      type("45E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .released)
    }
  }

  @Test("Who stops listening leaves nothing typed") func whoStopsListeningLeavesNothingTyped() async throws {
    try await onPanel { panel in
      var events: Events? = await armed(panel)
      type("123")
      #expect(await events?.next() == .touched)
      events = nil
      try await eventually("nothing is typed") { await panel.showing != .entering }
      type("45")
      try await eventually("the digits are wiped") { digits.count == 0 }
      #expect(await panel.showing != .entering)
    }
  }

  @Test("Escape twice cancels whatever is asked") func escapeTwiceCancelsWhateverIsAsked() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      type("12XX")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .released)
      #expect(await events.next() == .gesture(Gesture(.cancelKeys, held: .zero)))
      #expect(await events.next() == nil)
    }
  }

  @Test("A fault is reported when it changes") func faultIsReportedWhenItChanges() async throws {
    try await onPanel { panel in
      var changes = panel.troubleChanges.makeAsyncIterator()
      #expect(await panel.troubles == [])
      keypad.keypadIsUnavailable("unplugged")
      await changes.next()
      #expect(await panel.troubles == ["keypad: unplugged"])
      button.continuation.yield(.unavailable("line gone"))
      await changes.next()
      #expect(await panel.troubles == ["line gone", "keypad: unplugged"])
      keypad.keypadIsAvailable()
      await changes.next()
      #expect(await panel.troubles == ["line gone"])
      button.continuation.yield(.up(clock.now))
      await changes.next()
      #expect(await panel.troubles == [])
    }
  }

  @Test("Feedback for each key is the same for each key", arguments: ["1", "9", "17D"])
  func feedbackForEachKeyIsTheSameForEachKey(keys: String) async throws {
    try await onPanel(feedback: .eachKey) { panel in
      var events = await armed(panel)
      for (index, key) in keys.enumerated() {
        let before = indicator.lit.count
        type(String(key))
        if index == 0 { #expect(await events.next() == .touched) }
        try await eventually("the LED is dark for the key") {
          indicator.lit.last == .some(nil) && indicator.lit.count != before
        }
        await clock.untilAsleep(2)
        clock.advance(by: .milliseconds(80))
        try await eventually("the LED is lit again") { indicator.lit.last == .some(.amber) }
        #expect(Array(indicator.lit.dropFirst(before)).suffix(2) == [nil, .amber])
      }
    }
  }
}
