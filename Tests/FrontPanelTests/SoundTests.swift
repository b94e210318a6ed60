// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Testing

@Suite(.timeLimit(.minutes(5))) struct SoundTests {
  private let clock = ManualClock()
  private let sounder = TestSounder()

  private func panel() -> FrontPanel {
    FrontPanel(button: TestButton(), indicator: TestIndicator(), sounder: sounder, clock: clock)
  }

  @Test("A request beeps once") func aRequestBeepsOnce() async throws {
    let panel = panel()
    await panel.show(.confirmationWanted)
    try await eventually("the beep") { sounder.heard == [true] }
    await panel.show(.confirmationWanted)
    // The LED sleeps, too.
    await clock.untilAsleep(2)
    clock.advance(by: .milliseconds(100))
    try await eventually("the end of the beep") { sounder.heard == [true, false, false] }
    await panel.show(.confirmationWanted)
    #expect(sounder.heard == [true, false, false])
  }

  @Test("What comes next cuts a beep short") func whatComesNextCutsABeepShort() async throws {
    let panel = panel()
    await panel.show(.confirmationWanted)
    try await eventually("the beep") { sounder.heard == [true] }
    await panel.show(.talkingToServer)
    await panel.show(.pinWanted)
    try await eventually("the second beep") { sounder.heard == [true, true] }
    // The LED and the second beep sleep; the first beep has ended.
    try await eventually("only the second beep") { clock.untilNextWakes == .milliseconds(100) }
    clock.advance(by: .milliseconds(100))
    try await eventually("the end of the second beep") { sounder.heard == [true, true, false, false] }
  }

  /// The sounds reveal that an action is required and how it ended, and nothing about typed digits.
  @Test("Only prompts and outcomes have a sound") func onlyPromptsAndOutcomesHaveASound() {
    let heard = Indication.legend.filter { $0.row.sound != nil }
    #expect(
      heard == [
        .anotherRequest, .confirmationWanted, .pinWanted, .numberWanted, .noSuchChoice, .option([4, 2]), .code([2, 0]),
        .newPINWanted(again: false), .newPINWanted(again: true), .veryLongHoldWanted, .confirmed, .denied,
        .pinWrong(remaining: 2), .pinRefused(rule: 1),
      ])
    #expect(Indication.pinWrong(remaining: 2).row.sound == Indication.pinWrong(remaining: 1).row.sound)
    for indication in heard {
      let begin = indication == .anotherRequest ? Duration.seconds(1) : .zero
      #expect(indication.row.sound?.isLit(after: begin) == true)
      #expect(indication.row.sound?.isLit(after: begin + .seconds(1)) == false)
    }
  }
}
