// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import GPIO
import MobileAuth
import Testing

@testable import Boards

@Suite("One button made of one line or two", .timeLimit(.minutes(5))) struct TwoButtonsTests {
  struct Case: CustomTestStringConvertible {
    let testDescription: String
    /// The line, whether it closes, and the time in milliseconds.
    let edges: [(TwoButtons.Line, Bool, Int)]
    let events: [ButtonEvent]
  }

  static let both = ButtonEvent.void("both buttons are down")

  static let cases = [
    Case(
      testDescription: "the main button is the button", edges: [(.main, true, 1000), (.main, false, 2000)],
      events: [.down(.approve, at(1000)), .up(at(2000))]),
    Case(
      testDescription: "the other one is the deny button", edges: [(.deny, true, 1000), (.deny, false, 1200)],
      events: [.down(.deny, at(1000)), .up(at(1200))]),
    Case(
      testDescription: "deny in the middle of a hold ends it without an answer",
      edges: [(.main, true, 1000), (.deny, true, 2000), (.deny, false, 2100), (.main, false, 2200)],
      events: [.down(.approve, at(1000)), both, .down(.deny, at(2000)), .up(at(2200))]),
    Case(
      testDescription: "and so does the main button while deny is held",
      edges: [(.deny, true, 1000), (.main, true, 1100), (.deny, false, 1200), (.main, false, 3000)],
      events: [.down(.deny, at(1000)), both, .down(.approve, at(1100)), .up(at(3000))]),
    Case(
      testDescription: "after both are up, a press is a press again",
      edges: [
        (.main, true, 1000), (.deny, true, 1001), (.main, false, 1100), (.deny, false, 1200), (.main, true, 2000),
      ],
      events: [.down(.approve, at(1000)), both, .down(.deny, at(1001)), .up(at(1200)), .down(.approve, at(2000))]),
  ]

  static func at(_ milliseconds: Int) -> MonotonicInstant { MonotonicInstant(uptime: .milliseconds(milliseconds)) }

  private func hear(_ buttons: inout TwoButtons, _ line: TwoButtons.Line, _ event: InputEvent) -> [ButtonEvent] {
    buttons.hear(line, event) { MonotonicInstant(uptime: $0) }
  }

  @Test("Edges", arguments: cases) func edges2(_ table: Case) {
    var buttons = TwoButtons()
    let events = table.edges.flatMap { line, isActive, milliseconds in
      hear(&buttons, line, .edge(isActive: isActive, at: .milliseconds(milliseconds)))
    }
    #expect(events == table.events)
  }

  /// The gesture recognizer's result is decisive.
  @Test("A hold with a press of deny during it never accepts", arguments: cases)
  func aHoldWithAPressOfDenyDuringItNeverAccepts(_ table: Case) {
    var recognizer = GestureRecognizer(timing: GestureTiming(), armedAt: Self.at(0), isDown: false)
    var gestures: [Gesture.Kind] = []
    for event in table.events {
      let findings =
        switch event {
        case .down(let role, let moment): recognizer.press(role, at: moment)
        case .up(let moment): recognizer.release(at: moment)
        case .void, .unavailable:
          {
            recognizer = GestureRecognizer(timing: GestureTiming(), armedAt: Self.at(0), isDown: true)
            return [GestureRecognizer.Event]()
          }()
        }
      for case .gesture(let gesture) in findings { gestures.append(gesture.kind) }
    }
    let isClean = !table.events.contains(Self.both)
    #expect(gestures == (isClean ? [table.edges[0].0 == .main ? .hold : .denyButton] : []))
  }

  @Test("A button held when the line opens is not a press") func aButtonHeldWhenTheLineOpensIsNotAPress() {
    var buttons = TwoButtons()
    let opened = hear(&buttons, .main, .opened(isActive: true, at: .seconds(1)))
    #expect(
      opened == [.void("a button was already held when its line was opened"), .down(.approve, Self.at(1000))])
    #expect(hear(&buttons, .main, .edge(isActive: false, at: .seconds(2))) == [.up(Self.at(2000))])
    #expect(hear(&buttons, .main, .edge(isActive: true, at: .seconds(3))) == [.down(.approve, Self.at(3000))])
  }

  @Test("A line that opens released reports nothing the first time, and a release after an outage")
  func aLineThatOpensReleasedReportsNothingTheFirstTimeAndAReleaseAfterAnOutage() {
    var buttons = TwoButtons()
    #expect(hear(&buttons, .main, .opened(isActive: false, at: .seconds(1))) == [])
    #expect(hear(&buttons, .main, .edge(isActive: true, at: .seconds(2))) == [.down(.approve, Self.at(2000))])
    let gone = GPIOError.gone(chip: "c")
    #expect(hear(&buttons, .main, .unavailable(gone)) == [.unavailable("\(gone)")])
    #expect(hear(&buttons, .deny, .unavailable(gone)) == [.unavailable("\(gone)")])
    #expect(hear(&buttons, .main, .opened(isActive: false, at: .seconds(5))) == [])
    #expect(hear(&buttons, .deny, .opened(isActive: false, at: .seconds(6))) == [.up(Self.at(6000))])
  }
}
