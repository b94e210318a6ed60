// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import GPIO
import Glibc
import Testing

private let button = InputLine(offset: 0, name: "BUTTON", bias: .pullUp, isActiveLow: true)
private let red = OutputLine(offset: 2, name: "RED")

/// A bank with an awaitable stream of its first input's events.
private final class Bank {
  private let events: AsyncStream<InputEvent>
  private let lines: LineBank

  init(
    _ labels: [String] = [Bench.label], inputs: [InputLine] = [button], outputs: [OutputLine] = [red],
    consumer: String = "approval-token"
  ) {
    let (events, continuation) = AsyncStream<InputEvent>.makeStream()
    self.events = events
    lines = LineBank(chip: labels, inputs: inputs, outputs: outputs, consumer: consumer) { input, event in
      if input == 0 { continuation.yield(event) }
    }
  }

  var trouble: GPIOError? { lines.trouble }

  func set(_ output: Int, _ isOn: Bool) { lines.set(output, isOn) }

  func close() { lines.close() }

  func next() async -> InputEvent? {
    await events.elements(until: "the next event of the bank") { _ in true }.first
  }

  func nextEdge() async throws -> (isActive: Bool, at: Duration) {
    guard case .edge(let isActive, let at) = await next() else { throw BenchError(what: "no edge") }
    return (isActive, at)
  }

  func opened() async throws -> Bool {
    guard case .opened(let isActive, _) = await next() else {
      throw BenchError(what: "not opened: \(trouble as Any)")
    }
    return isActive
  }
}

@Suite("GPIO on the bench", .serialized, .enabled(if: isBenchKernel, elsewhere), .timeLimit(.minutes(2)))
struct GPIOOnTheBench {
  let bench: Bench

  init() throws { bench = try Bench() }

  @Test("A press and a release arrive, dated by the kernel") func aPressAndAReleaseArriveDatedByTheKernel() async throws
  {
    let bank = Bank()
    #expect(try await bank.opened() == false)
    let before = monotonicTime()
    try bench.press()
    let between = monotonicTime()
    let down = try await bank.nextEdge()
    #expect(down.isActive)
    // The interrupt is simulated by a kernel thread, which may run shortly after the write has returned.
    #expect((before...between + .milliseconds(200)).contains(down.at))
    try bench.release()
    let up = try await bank.nextEdge()
    #expect(!up.isActive)
    #expect(up.at > down.at)
    #expect(bank.trouble == nil)
  }

  @Test("A bouncing contact gives one edge") func aBouncingContactGivesOneEdge() async throws {
    var slow = button
    // Wider than usual: on a busy machine the writer of these edges may be delayed.
    slow.debounce = .milliseconds(50)
    let bank = Bank(inputs: [slow])
    #expect(try await bank.opened() == false)
    for gap in [100, 250, 1000, 5000] as [UInt32] {
      for _ in 0..<4 {
        try bench.press()
        usleep(gap)
        try bench.release()
        usleep(gap)
      }
      try bench.press()
      #expect(try await bank.nextEdge().isActive, "gap \(gap) µs")
      try bench.release()
      #expect(try await bank.nextEdge().isActive == false, "gap \(gap) µs")
    }
  }

  /// Fails if the release, which settles first, comes first: then a press of deny does not end the hold.
  @Test("The events of two buttons come in the order of their times") func twoButtons() async throws {
    var deny = button
    (deny.offset, deny.name, deny.debounce) = (Bench.Line.deny.rawValue, "DENY", .milliseconds(50))
    let (edges, continuation) = AsyncStream<String>.makeStream()
    let lines = LineBank(chip: [Bench.label], inputs: [button, deny], outputs: []) { input, event in
      if case .edge(let isActive, _) = event { continuation.yield("\(input) \(isActive)") }
    }
    _ = try await eventually("the lines") { lines.trouble == nil ? true : nil }
    try bench.press()
    usleep(100_000)
    try bench.press(.deny)
    usleep(20_000)
    try bench.release()
    usleep(200_000)
    try bench.release(.deny)
    let heard = await edges.elements(until: "the release of deny") { $0 == "1 false" }
    #expect(heard == ["0 true", "1 true", "0 false", "1 false"])
    lines.close()
  }

  @Test("An LED lights, is dark at first, and dark when the bank closes")
  func anLEDLightsIsDarkAtFirstAndDarkWhenTheBankCloses() async throws {
    let bank = Bank()
    _ = try await bank.opened()
    #expect(try !bench.isHigh(.red))
    bank.set(0, true)
    #expect(try bench.isHigh(.red))
    bank.set(0, false)
    #expect(try !bench.isHigh(.red))
    bank.set(0, true)
    bank.close()
    #expect(try !bench.isHigh(.red))
  }

  @Test("An LED between supply and line is dark while its line is high")
  func anLEDBetweenSupplyAndLineIsDarkWhileItsLineIsHigh() async throws {
    let bank = Bank(outputs: [OutputLine(offset: 2, name: "RED", isActiveLow: true)])
    _ = try await bank.opened()
    #expect(try bench.isHigh(.red))
    bank.set(0, true)
    #expect(try !bench.isHigh(.red))
  }

  @Test("A button held from the start is reported as down, without an edge")
  func aButtonHeldFromTheStartIsReportedAsDownWithoutAnEdge() async throws {
    try bench.press()
    // A request with a bias would set gpio-sim's pull and so release the button.
    var held = button
    held.bias = .asIs
    let bank = Bank(inputs: [held])
    #expect(try await bank.opened())
    try bench.release()
    #expect(try await bank.nextEdge().isActive == false)
  }

  @Test("A line in use names its consumer, and opens when it is released")
  func aLineInUseNamesItsConsumerAndOpensWhenItIsReleased() async throws {
    let intruder = Bank(consumer: "intruder")
    _ = try await intruder.opened()
    let bank = Bank()
    #expect(await bank.next() == .unavailable(.busy(offset: 0, chip: Bench.label, consumer: "intruder")))
    intruder.close()
    #expect(try await bank.opened() == false)
    #expect(bank.trouble == nil)
  }

  @Test("Wrong chips, lines and names give different errors") func wrongChipsLinesAndNamesGiveDifferentErrors()
    async throws
  {
    let noChip = await Bank(["pinctrl-rp1", "pinctrl-bcm2711"]).next()
    #expect(
      noChip == .unavailable(.noChip(labels: ["pinctrl-rp1", "pinctrl-bcm2711"], present: [Bench.label])))
    #expect(
      await Bank(inputs: [InputLine(offset: 6)]).next()
        == .unavailable(.noLine(offset: 6, chip: Bench.label, count: 6)))
    #expect(
      await Bank(inputs: [InputLine(offset: 0, name: "GPIO17")]).next()
        == .unavailable(.otherName(offset: 0, chip: Bench.label, expected: "GPIO17", found: "BUTTON")))
  }

  @Test("A chip that is removed is reported, and recovers together with its LED")
  func aChipThatIsRemovedIsReportedAndRecoversTogetherWithItsLED() async throws {
    let bank = Bank()
    _ = try await bank.opened()
    bank.set(0, true)
    try bench.removeChip()
    #expect(await bank.next() == .unavailable(.gone(chip: Bench.label)))
    try bench.makeChip()
    let event = await bank.next()
    guard case .opened(isActive: false, _) = event else { throw BenchError(what: "\(event as Any)") }
    #expect(try bench.isHigh(.red))
    try bench.press()
    #expect(try await bank.nextEdge().isActive)
  }

  @Test("Lost edges are reported, and the level is read again") func lostEdgesAreReportedAndTheLevelIsReadAgain()
    async throws
  {
    let bank = Bank()
    _ = try await bank.opened()
    try starvingOthers {
      for _ in 0..<20 {
        try bench.press()
        spin(for: .milliseconds(15))
        try bench.release()
        spin(for: .milliseconds(15))
      }
    }
    #expect(await bank.next() == .unavailable(.edgesLost(offset: 0)))
    // On a busy machine the driver runs in the middle of the presses; then the last release follows.
    var isPressed = try await bank.opened()
    for _ in 0..<40 where isPressed { isPressed = try await bank.nextEdge().isActive }
    #expect(!isPressed)
  }

  @Test("Sleeps while nothing happens") func sleepsWhileNothingHappens() async throws {
    let bank = Bank()
    _ = try await bank.opened()
    // Wait until udev has processed the new device node.
    try await Task.sleep(for: .seconds(2))
    let before = try sleeps(ofThreadsCalled: "gpio")
    #expect(before > 0)
    try await Task.sleep(for: .seconds(10))
    #expect(try sleeps(ofThreadsCalled: "gpio") == before)
    bank.close()
  }

  @Test("Lists the chip with its lines and their users") func listsTheChipWithItsLinesAndTheirUsers() async throws {
    let bank = Bank()
    _ = try await bank.opened()
    let chips = try describeChips().map { try $0.get() }
    #expect(chips.map(\.label) == [Bench.label])
    #expect(chips[0].lines.map(\.name) == ["BUTTON", "DENY", "RED", "GREEN", "BLUE", "BUZZER"])
    #expect(chips[0].lines.map(\.consumer) == ["approval-token", nil, "approval-token", nil, nil, nil])
    #expect(chips[0].lines[2].isOutput)
  }
}

/// The kernel simulates interrupts once per tick, 10 ms; edges that are closer together are merged.
private func spin(for duration: Duration) {
  let end = monotonicTime() + duration
  while monotonicTime() < end {}
}

/// Runs `body` at real-time priority, so that no ordinary thread runs in the meantime, as during an interrupt storm.
private func starvingOthers(_ body: () throws -> Void) throws {
  var urgent = sched_param(sched_priority: 10)
  guard sched_setscheduler(0, SCHED_FIFO, &urgent) == 0 else {
    throw BenchError(what: "sched_setscheduler: errno \(errno)")
  }
  var ordinary = sched_param(sched_priority: 0)
  defer { sched_setscheduler(0, SCHED_OTHER, &ordinary) }
  try body()
}
