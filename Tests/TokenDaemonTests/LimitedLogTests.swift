// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import FrontPanel
import Logging
import MobileAuth
import RecordedLog
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct LimitedLogTests {
  /// Fails if a client that may publish at the broker fills the log.
  @Test("A thousand warnings about one subject are some lines and a count") func limited() {
    let (clock, lines) = (ManualClock(), RecordedLog())
    let log = LimitedLog(lines.logger, clock: clock)
    let subject = TokenEvent.dropped("forged").subject
    for number in 1...1000 { log.report("dropped: \(number)", about: subject) }
    log.report("another", about: "another subject")
    #expect(lines.all.count == LimitedLog.hourly + 2)
    #expect(lines.all.suffix(2).last == "another")
    #expect(lines.all[LimitedLog.hourly].hasPrefix("more than 60 lines about \(subject) in an hour"))
    clock.advance(by: .seconds(3600))
    log.report("dropped: last", about: subject)
    #expect(
      lines.all.suffix(2) == ["940 more lines about \(subject) were omitted in the hour before", "dropped: last"])
  }

  /// Fails without the limit: a USB device can unplug itself many times a second.
  @Test("A keypad that comes and goes without end causes 61 lines in an hour") func restlessKeypad() async throws {
    let lines = RecordedLog()
    let environment = TokenEnvironment.test(SystemClock())
    let board = try RunningBoard(BoardCatalog.profile("simulated"), clock: environment.clock)
    let watch = HardwareWatch(
      panel: board.panel, environment: environment, logger: lines.logger)
    let running: [Task<Void, Never>] = [Task { await board.panel.run() }, Task { _ = try? await watch.run() }]
    let keypad = try board.simulatedKeypad
    for change in 1...200 {
      let isUnplugged = !change.isMultiple(of: 2)
      keypad.perform(isUnplugged ? .unplug : .plugIn)
      // A change that the watch has not seen before the next one causes no line.
      try await eventually("change \(change)") {
        let hasFault = await !board.panel.troubles.isEmpty
        return hasFault == isUnplugged && lines.all.count >= min(change, LimitedLog.hourly + 1)
      }
    }
    #expect(lines.all.count == LimitedLog.hourly + 1 && lines.all.contains { $0.hasPrefix("trouble: ") })
    // The chip has lines of its own.
    try board.simulatedButton.unplug()
    try await eventually("the chip's fault in the log") { lines.all.contains("trouble: the chip is unplugged") }
    for task in running {
      task.cancel()
      try await task.finished()
    }
  }
}
