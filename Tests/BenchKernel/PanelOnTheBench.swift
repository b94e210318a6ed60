// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import BuiltPrograms
import FrontPanel
import GPIO
import Glibc
import MobileAuth
import Secrets
import Testing

/// The panel as used by the service, from the board's profile to gestures and PINs, with real lines and a real keypad.
@Suite("The panel on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(2)))
final class PanelOnTheBench: Sendable {
  let bench: Bench
  let board: HardwareBoard
  let panel: FrontPanel
  private let running: Task<Void, Never>

  init() async throws {
    bench = try Bench()
    guard system("panel plug") == 0 else { throw BenchError(what: "panel plug") }
    let profile = try BoardCatalog.profile("boards/bench-kernel/board.toml")
    let clock = SystemClock()
    board = try HardwareBoard(try #require(profile.lines), keypad: profile.keypad?.usb, clock: clock)
    let panel = FrontPanel(
      button: board.button, indicator: board.indicator, keypad: board.keypad, clock: clock,
      timing: profile.timing, entry: profile.keypad?.entry ?? EntrySettings())
    self.panel = panel
    running = Task { await panel.run() }
    try await untilNoTrouble()
  }

  deinit {
    running.cancel()
    board.close()
    _ = system("panel unplug")
  }

  private func untilNoTrouble() async throws {
    _ = try await eventually("a board without trouble") { [board] in board.troubles.isEmpty ? true : nil }
  }

  /// The panel's events for `action`, which begins after the guard time.
  private func outcome(
    of prompt: Prompt = .confirmation, _ action: @escaping @Sendable () async throws -> Void
  ) async throws -> [PanelEvent] {
    let person = Task {
      try await Task.sleep(for: .milliseconds(700))
      try await action()
    }
    let events = await panel.events(for: prompt).elements(until: "the end of the prompt") {
      if case .dark = $0 { true } else { false }
    }
    try await person.finished("the end of what the user does")
    return events
  }

  private func hold(_ line: Bench.Line, for duration: Duration) async throws {
    try bench.press(line)
    try await Task.sleep(for: duration)
    try bench.release(line)
  }

  private func gestures(_ events: [PanelEvent]) -> [Gesture.Kind] {
    events.compactMap { if case .gesture(let gesture) = $0 { gesture.kind } else { nil } }
  }

  @Test("A hold accepts") func aHoldAccepts() async throws {
    let events = try await outcome { [self] in try await hold(.button, for: .milliseconds(1200)) }
    #expect(gestures(events) == [.hold])
  }

  @Test("The second button denies") func theSecondButtonDenies() async throws {
    let events = try await outcome { [self] in try await hold(.deny, for: .milliseconds(200)) }
    #expect(gestures(events) == [.denyButton])
  }

  @Test("A button held from before the request is ignored, and the next press is accepted")
  func aButtonHeldFromBeforeTheRequestIsIgnoredAndTheNextPressIsAccepted() async throws {
    try bench.press()
    try await Task.sleep(for: .milliseconds(200))
    let events = try await outcome { [self] in
      try await Task.sleep(for: .seconds(1))
      try bench.release()
      try await Task.sleep(for: .milliseconds(200))
      try await hold(.button, for: .milliseconds(1200))
    }
    #expect(gestures(events) == [.hold])
    guard case .gesture(let gesture)? = events.last else { throw BenchError(what: "\(events)") }
    #expect(gesture.held < .milliseconds(2000))
  }

  @Test("A hold during the removal of the chip is not a gesture") func aHoldDuringTheRemovalOfTheChipIsNotAGesture()
    async throws
  {
    let events = try await outcome { [self] in
      try bench.press()
      try await Task.sleep(for: .milliseconds(500))
      try bench.removeChip()
    }
    #expect(gestures(events) == [])
    guard case .dark? = events.last else { throw BenchError(what: "\(events)") }
    #expect(!board.troubles.isEmpty)
    try bench.makeChip()
    // The chip is back; wait until the panel has detected it.
    try await Task.sleep(for: .milliseconds(300))
    try await untilNoTrouble()
    // What the LED showed meanwhile was not seen.
    for event in await panel.events(for: .confirmation).elements(until: "the end of the prompt") {
      #expect(event == .lit)
    }
    let again = try await outcome { [self] in try await hold(.button, for: .milliseconds(1200)) }
    #expect(gestures(again) == [.hold], "\(again)")
  }

  @Test("Digits typed on the keypad are the PIN") func digitsTypedOnTheKeypadAreThePIN() async throws {
    let events = try await outcome(of: .digits(count: 5)) {
      let gadget = open("/dev/hidg0", O_RDWR | O_CLOEXEC)
      defer { close(gadget) }
      for usage in [0x59, 0x5A, 0x5B, 0x63, 0x5C, 0x5D, 0x62, 0x58] as [UInt8] {
        for report in [[0, 0, usage, 0, 0, 0, 0, 0], [UInt8](repeating: 0, count: 8)] {
          guard write(gadget, report, 8) == 8 else { throw BenchError(what: "report: errno \(errno)") }
        }
      }
    }
    guard case .entered(let digits)? = events.last else { throw BenchError(what: "\(events)") }
    #expect(PIN(digits) == PIN(digits: SecretBytes(copying: Array("12450".utf8))))
  }

  @Test("The LED shows the indications in their colors") func theLEDShowsTheIndicationsInTheirColors() async throws {
    await panel.show(.disconnected)
    var seen: Set<[Bool]> = []
    let end = monotonicTime() + .seconds(5)
    while monotonicTime() < end {
      seen.insert(try [Bench.Line.red, .green, .blue].map { try bench.isHigh($0) })
      try await Task.sleep(for: .milliseconds(10))
    }
    // A dim red flash every two seconds.
    #expect(seen == [[false, false, false], [true, false, false]])
  }
}

@Suite("A crash on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(2)))
struct CrashOnTheBench {
  @Test("Releases the lines, and the LED is dark on this chip") func releasesTheLinesAndTheLEDIsDarkOnThisChip() throws
  {
    let bench = try Bench()
    guard let probe = popen("exec \(try BuiltProgram.path("bench-probe"))", "re") else {
      throw BenchError(what: "popen")
    }
    var line = [CChar](repeating: 0, count: 16)
    #expect(fgets(&line, 16, probe) != nil)
    // The lines are open; the LED can follow a moment later.
    try blockUntil { try bench.isHigh(.red) }
    #expect(try bench.isHigh(.red))
    let users = try describeChips()[0].get().lines.compactMap(\.consumer)
    #expect(users == ["approval-token", "approval-token"])
    #expect(system("kill -KILL $(pidof bench-probe)") == 0)
    pclose(probe)
    #expect(try describeChips()[0].get().lines.allSatisfy { $0.consumer == nil })
    #expect(try !bench.isHigh(.red))
  }
}
