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
      var events = await armed(panel)
      let edges: [(Int64, Bool)] = [(0, true), (2000, false), (5000, true), (5100, false), (5300, true), (5400, false)]
      let start = clock.now
      for (at, isDown) in edges {
        let moment = start + .milliseconds(at)
        button.continuation.yield(isDown ? .down(.approve, moment) : .up(moment))
      }
      var seen: [PanelEvent] = []
      while let event = await events.next() { seen.append(event) }
      #expect(seen == [.touched, .released, .touched, .gesture(Gesture(.doublePress, held: .milliseconds(100)))])
    }
  }

  @Test("A short press is delivered, and the prompt continues") func shortPressIsDelivered() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      let edges: [(Int64, Bool)] = [(0, true), (100, false), (2000, true), (2100, false), (2300, true), (2400, false)]
      let start = clock.now
      for (at, isDown) in edges {
        let moment = start + .milliseconds(at)
        button.continuation.yield(isDown ? .down(.approve, moment) : .up(moment))
      }
      var seen: [PanelEvent] = []
      while let event = await events.next() { seen.append(event) }
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
      #expect(await events.next() == .unavailable("line gone"))
      #expect(await panel.showing == .entering)
      type("D")
      #expect(await events.next() == .released)
    }
  }

  @Test("A PIN is not taken while the button is gone") func aPINIsNotTakenWhileTheButtonIsGone() async throws {
    try await onPanel { panel in
      var events = await armed(panel)
      button.continuation.yield(.unavailable("line gone"))
      #expect(await events.next() == .unavailable("line gone"))
      #expect(await panel.troubles == ["line gone"])
      type("13579E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .unavailable("line gone"))
      #expect(await events.next() == .released)
      #expect(await panel.showing == .pinWanted)
      // A prompt armed in the meantime is notified immediately.
      events = panel.events(for: .digits(count: 5)).makeAsyncIterator()
      #expect(await events.next() == .unavailable("line gone"))
      button.continuation.yield(.up(clock.now))
      try await eventually { await panel.troubles.isEmpty }
      clock.advance(by: .seconds(1))
      type("13579E")
      #expect(await events.next() == .touched)
      #expect(await events.next() == .typed("13579"))
    }
  }
}
