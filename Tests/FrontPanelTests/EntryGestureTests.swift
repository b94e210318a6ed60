// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Secrets
import Testing

/// The button while digits are wanted.
extension EntryPanelTests {
  @Test("A hold means nothing while digits are wanted and a double press denies")
  func aHoldMeansNothingWhileDigitsAreWantedAndADoublePressDenies() async throws {
    try await onPanel { panel in
      let events = await armedPrompt(panel)
      let edges: [(Int64, Bool)] = [(0, true), (2000, false), (5000, true), (5100, false), (5300, true), (5400, false)]
      let start = clock.now
      for (at, isDown) in edges {
        let moment = start + .milliseconds(at)
        button.continuation.yield(isDown ? .down(.approve, moment) : .up(moment))
      }
      let seen = await events.elements(until: "the end of the prompt")
      #expect(seen == [.touched, .released, .touched, .gesture(Gesture(.doublePress, held: .milliseconds(100)))])
    }
  }

  @Test("A short press is delivered, and the prompt continues") func shortPressIsDelivered() async throws {
    try await onPanel { panel in
      let events = await armedPrompt(panel)
      let edges: [(Int64, Bool)] = [(0, true), (100, false), (2000, true), (2100, false), (2300, true), (2400, false)]
      let start = clock.now
      for (at, isDown) in edges {
        let moment = start + .milliseconds(at)
        button.continuation.yield(isDown ? .down(.approve, moment) : .up(moment))
      }
      let seen = await events.elements(until: "the end of the prompt")
      let denial = PanelEvent.gesture(Gesture(.doublePress, held: .milliseconds(100)))
      #expect(seen == [.touched, .shortPress, .released, .touched, denial])
    }
  }

  @Test("A finger that leaves the button does not unpin what is typed")
  func aFingerThatLeavesTheButtonDoesNotUnpinWhatIsTyped() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      type("1")
      #expect(await events.next() == .touched)
      let now = clock.now
      button.continuation.yield(.down(.approve, now))
      button.continuation.yield(.up(now + .seconds(1)))
      button.continuation.yield(.unavailable("line gone"))
      #expect(await events.next() == .dark("line gone"))
      #expect(await panel.showing == .entering)
      type("D")
      #expect(await events.next() == .released)
    }
  }

  @Test("A PIN is not taken while the button is gone") func aPINIsNotTakenWhileTheButtonIsGone() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      button.continuation.yield(.unavailable("line gone"))
      #expect(await events.next() == .dark("line gone"))
      #expect(await panel.troubles == ["line gone"])
      type("13579E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .dark("line gone"))
      #expect(await events.next() == .released)
      #expect(await panel.showing == .pinWanted)
      // A prompt armed in the meantime is notified immediately.
      events = panel.events(for: .digits(count: 5)).makeAsyncIterator()
      #expect(await events.next() == .dark("line gone"))
      clock.advance(by: .seconds(1))
      type("1")
      #expect(await events.next() == .touched)
      // The user may not have seen what the PIN is wanted for.
      button.continuation.yield(.up(clock.now))
      #expect(await events.next() == .lit)
      #expect(await events.next() == nil)
      #expect(await panel.troubles.isEmpty)
      #expect(await panel.showing == .pinWanted)
      events = try await ready(panel, .digits(count: 5))
      type("13579E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("13579"))
    }
  }

  /// Fails if a newer request takes the panel and the digits with it.
  @Test("Digits typed while the button is stuck are a touch", arguments: [false, true])
  func digitsBesideAStuckButton(isTypingBefore: Bool) async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      button.continuation.yield(.down(.approve, clock.now))
      #expect(await events.next() == .touched)
      if isTypingBefore {
        type("1")
        try await until(panel, shows: .entering)
      }
      // The LED and the timeouts.
      await clock.untilAsleep(2)
      clock.advance(by: .seconds(10))
      #expect(await events.next() == .stuck)
      if !isTypingBefore { type("1") }
      #expect(await events.next() == .touched)
      type("D")
      #expect(await events.next() == .released)
    }
  }

  @Test("A stuck button that was released is no touch, and the LED no longer reports it", arguments: [false, true])
  func stuckButtonIsLetGo(isVoid: Bool) async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      button.continuation.yield(.down(.approve, clock.now))
      #expect(await events.next() == .touched)
      await clock.untilAsleep(2)
      clock.advance(by: .seconds(10))
      #expect(await events.next() == .stuck)
      try await until(panel, shows: .seeLog)
      if isVoid {
        button.continuation.yield(.void("both"))
        #expect(await events.next() == .void("both"))
        #expect(await panel.showing == .pinWanted)
      }
      button.continuation.yield(.up(clock.now))
      try await until(panel, shows: .pinWanted)
      type("13579E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("13579"))
    }
  }

  /// What was announced to a dark LED is announced again, before any press or key counts.
  @Test("The first prompt after the LED was dark ends at once, unless it was idle since", arguments: [false, true])
  func darkBeforeThePrompt(isIdle: Bool) async throws {
    try await onPanel { panel in
      button.continuation.yield(.unavailable("line gone"))
      try await eventually("the line is gone") { await !panel.troubles.isEmpty }
      await panel.show(.pinWanted)
      button.continuation.yield(.up(clock.now))
      try await eventually("the line is back") { await panel.troubles.isEmpty }
      if isIdle { await panel.show(.idle(pending: 0)) }
      var events = panel.events(for: .digits(count: 5)).makeAsyncIterator()
      if !isIdle {
        #expect(await events.next() == .lit)
        #expect(await events.next() == nil)
        events = panel.events(for: .digits(count: 5)).makeAsyncIterator()
      }
      try await eventually("a prompt") { await panel.readiness != .nothingShown }
      clock.advance(by: .seconds(1))
      type("13579E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("13579"))
    }
  }

  @Test("A press that does not count ends no prompt") func pressThatDoesNotCount() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      button.continuation.yield(.down(.approve, clock.now))
      #expect(await events.next() == .touched)
      button.continuation.yield(.void("both"))
      #expect(await events.next() == .released)
      #expect(await events.next() == .void("both"))
      #expect(await panel.troubles.isEmpty)
      button.continuation.yield(.up(clock.now))
      type("13579E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("13579"))
    }
  }

  /// Fails if the LED says that nothing is typed while digits are, or hides what a release would do.
  @Test("What the handler shows meanwhile does not replace what the user does") func shownMeanwhile() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      type("1")
      #expect(await events.next() == .touched)
      await panel.show(.pinWanted)
      #expect(await panel.showing == .entering)
      type("D")
      #expect(await events.next() == .released)
      #expect(await panel.showing == .pinWanted)
      button.continuation.yield(.down(.approve, clock.now))
      #expect(await events.next() == .touched)
      await clock.untilAsleep(2)
      clock.advance(by: .seconds(6))
      try await eventually("\"release to report\" on the LED") { await panel.showing == .releaseToReport }
      await panel.show(.numberWanted)
      #expect(await panel.showing == .releaseToReport)
    }
  }

  @Test("When a very long hold confirms, the LED does not announce a denial") func veryLongHold() async throws {
    try await onPanel { panel in
      await panel.show(.veryLongHoldWanted)
      var events = try await ready(panel, .veryLongHold)
      button.continuation.yield(.down(.approve, clock.now))
      #expect(await events.next() == .touched)
      await clock.untilAsleep(2)
      clock.advance(by: .seconds(6))
      try await eventually("\"release to accept\" on the LED") { await panel.showing == .releaseToAccept }
    }
  }

  @Test("Where only a denial counts, the LED says that a very long hold reports") func veryLongHoldOnADenial()
    async throws
  {
    #expect(Prompt.denial != .veryLongHold)
    try await onPanel { panel in
      var events = try await ready(panel, .denial)
      button.continuation.yield(.down(.approve, clock.now))
      #expect(await events.next() == .touched)
      await clock.untilAsleep(2)
      clock.advance(by: .seconds(6))
      try await eventually("\"release to report\" on the LED") { await panel.showing == .releaseToReport }
    }
  }
}
