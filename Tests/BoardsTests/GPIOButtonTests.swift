// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import GPIO
import MobileAuth
import Testing

@testable import Boards

@Suite("The events of a button", .timeLimit(.minutes(1))) struct GPIOButtonTests {
  /// If the chip was gone in between, the LED was dark.
  @Test("Presses that a late reader has missed do not become one hold", arguments: [false, true])
  func lostPresses(wasGone: Bool) async {
    let button = GPIOButton(clock: ManualClock())
    // A press, and more than the queue holds of a button that chatters, whose last state is pressed.
    for number in 0..<(GPIOButton.capacity + 7) {
      button.hear(0, .edge(isActive: number.isMultiple(of: 2), at: .milliseconds(number)))
    }
    if wasGone {
      button.hear(0, .unavailable(.gone(chip: "c")))
      button.hear(0, .opened(isActive: false, at: .seconds(8)))
    }
    var events = button.events.makeAsyncIterator()
    for number in 0..<GPIOButton.capacity {
      switch await events.next() {
      case .down: #expect(number.isMultiple(of: 2))
      case .up: #expect(!number.isMultiple(of: 2))
      default: Issue.record("an event is lost inside the queue")
      }
    }
    button.hear(0, .edge(isActive: false, at: .seconds(9)))
    switch await events.next() {
    case .void: #expect(!wasGone)
    case .unavailable: #expect(wasGone)
    default: Issue.record("the reader does not hear that presses were lost")
    }
    // The next press is not complete for certain; the one after it is.
    for (number, isActive) in [true, false, true, false].enumerated() {
      button.hear(0, .edge(isActive: isActive, at: .seconds(10 + number)))
    }
    guard case .up = await events.next(), case .down = await events.next(), case .up = await events.next() else {
      Issue.record("presses do not count again")
      return
    }
  }
}
