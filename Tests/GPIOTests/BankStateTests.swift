// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import GPIO

@Suite(.timeLimit(.minutes(1))) struct BankStateTests {
  private let state = BankState(chip: ["panel"], inputs: [], outputs: [], consumer: "test") { _, _ in }

  /// Fails if the log, which is written by another task, can miss that the chip was removed.
  @Test("A chip that was removed stays gone while none is found") func gone() {
    let noChip = GPIOError.noChip(labels: ["panel"], present: [])
    #expect(state.note(.gone(chip: "panel")))
    #expect(!state.note(noChip) && !state.note(.failed(call: "opening", errno: 19)))
    #expect(state.trouble == .gone(chip: "panel"))
    let busy = GPIOError.busy(offset: 1, chip: "panel", consumer: "other")
    #expect(state.note(busy) && state.trouble == busy)
    #expect(state.note(noChip) && !state.note(noChip) && state.trouble == noChip)
  }

  /// Fails if another chip, which root alone can open, replaces the removed one in the status.
  @Test("A chip that was removed stays gone while another one cannot be opened, and not if its own node cannot")
  func otherChip() {
    let gone = GPIOError.gone(chip: "panel")
    let other = GPIOError.notPermitted(path: "/dev/gpiochip0", group: "root")
    let own = GPIOError.notPermitted(path: "/dev/gpiochip2", group: "root")
    func isNews(_ trouble: GPIOError, after previous: GPIOError?) -> Bool {
      BankState.isNews(trouble, after: previous, unreadable: ["/dev/gpiochip0"])
    }
    #expect(!isNews(other, after: gone) && isNews(own, after: gone))
    #expect(isNews(other, after: .notYetOpened) && !isNews(other, after: other) && isNews(gone, after: nil))
  }

  @Test("If no chip fits, the error of one that cannot be opened counts only if none can be opened")
  func missingChip() {
    let refused = GPIOError.notPermitted(path: "/dev/gpiochip0", group: "root")
    let obstacles = [(path: "/dev/gpiochip0", error: refused)]
    #expect(Chip.missing(["panel"], present: [], obstacles) == refused)
    let missing = Chip.missing(["panel"], present: ["other"], obstacles)
    #expect(missing == .noChip(labels: ["panel"], present: ["other"], unreadable: ["/dev/gpiochip0"]))
    #expect(
      "\(missing)"
        == "no GPIO chip has the label \"panel\"; there are \"other\", and /dev/gpiochip0, which cannot be opened")
    #expect(Chip.missing(["panel"], present: [], []) == .noChip(labels: ["panel"], present: []))
  }
}
