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
}
