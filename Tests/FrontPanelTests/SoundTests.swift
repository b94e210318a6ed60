import ApprovalTestKit
import FrontPanel
import MobileAuth
import Testing

@Suite struct SoundTests {
  private let timekeeper = ManualTimekeeper()
  private let sounder = TestSounder()

  private func panel() -> FrontPanel {
    FrontPanel(button: TestButton(), indicator: TestIndicator(), sounder: sounder, timekeeper: timekeeper)
  }

  private func until(_ condition: () -> Bool) async { while !condition() { await Task.yield() } }

  @Test func aRequestBeepsOnce() async {
    let panel = panel()
    await panel.show(.confirmationWanted)
    await until { sounder.heard == [true] }
    await panel.show(.confirmationWanted)
    // The LED sleeps too.
    await timekeeper.untilAsleep(2)
    timekeeper.advance(by: .milliseconds(100))
    await until { sounder.heard == [true, false, false] }
    await panel.show(.confirmationWanted)
    #expect(sounder.heard == [true, false, false])
  }

  @Test func whatComesNextCutsABeepShort() async {
    let panel = panel()
    await panel.show(.confirmationWanted)
    await until { sounder.heard == [true] }
    await panel.show(.talkingToServer)
    await panel.show(.pinWanted)
    await until { sounder.heard == [true, true] }
    await timekeeper.untilAsleep(2)
    timekeeper.advance(by: .milliseconds(100))
    await until { sounder.heard == [true, true, false, false] }
  }

  /// Whoever listens learns that something is wanted and how it ended, and nothing of what is typed.
  @Test func onlyWhatWantsAHandOrEndsIsHeard() {
    let heard = Indication.legend.filter { $0.sound != nil }
    #expect(
      heard == [
        .confirmationWanted, .pinWanted, .numberWanted, .noSuchChoice, .option([4, 2]), .code([2, 0]),
        .newPINWanted(again: false), .newPINWanted(again: true), .veryLongHoldWanted, .confirmed, .denied,
        .pinWrong(remaining: 2), .pinRefused(rule: 1),
      ])
    #expect(Indication.pinWrong(remaining: 2).sound == Indication.pinWrong(remaining: 1).sound)
    for indication in heard {
      #expect(indication.sound?.isLit(after: .zero) == true)
      #expect(indication.sound?.isLit(after: .seconds(1)) == false)
    }
  }
}
