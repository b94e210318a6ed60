// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import HIDReports
import MobileAuth
import Secrets

/// Types on a panel as a USB keypad would: every report is secret, all eight bytes.
final class Typist {
  /// Never pressed: its stream neither yields nor ends.
  private struct NoButton: Button {
    let events: AsyncStream<ButtonEvent>
    private let continuation: AsyncStream<ButtonEvent>.Continuation

    init() { (events, continuation) = AsyncStream.makeStream() }
  }

  private struct NoIndicator: Indicator {
    func light(_ color: LEDColor?, in context: LEDContext) {}
  }

  private let channel: KeypadChannel
  private let panel: FrontPanel
  private let running: Task<Void, Never>
  private var decoder = BootKeyboardDecoder()
  private let report = UnsafeMutableRawBufferPointer.allocate(byteCount: BootKeyboardDecoder.reportBytes, alignment: 8)

  init() {
    let clock = SystemClock()
    var timing = GestureTiming()
    timing.guardTime = .zero
    channel = KeypadChannel(clock: clock)
    let panel = FrontPanel(
      button: NoButton(), indicator: NoIndicator(), keypad: channel, clock: clock, timing: timing)
    self.panel = panel
    running = Task { await panel.run() }
  }

  deinit {
    running.cancel()
    report.deallocate()
  }

  /// Types digits with all kinds of input in between: digits deleted in each way, both rows of digits, NumLock around a
  /// digit, two keys at once, and an empty report.
  /// - Returns: the PIN from the panel.
  func type(_ digits: String) async throws -> PIN {
    // The panel reports an unavailable keypad exactly once, when the prompt is armed or later: then the prompt is
    // armed.
    channel.keypadIsUnavailable("not yet")
    var events = panel.events(for: .digits(count: digits.utf8.count)).makeAsyncIterator()
    guard case .unavailable = await events.next() else { throw TypistError.unexpected }
    channel.keypadIsAvailable()
    // A digit and delete, two zeros and clear, a digit and escape.
    for keys: [UInt8] in [[0x5B, 0x2A], [0xB0, 0x55], [0x60, 0x29]] {
      try send([keys[0]])
      try send(keys)
      try send([])
    }
    for (index, digit) in digits.utf8.enumerated() {
      let place = (digit &- 0x31 &+ 10) % 10
      let usage = (index % 2 == 0 ? 0x59 : 0x1E) + place
      try send([0x53])
      try send([0x53, usage])
      try send([1, 1, 1, 1, 1, 1])
      try send([usage])
    }
    try send([0x58])
    while let event = await events.next() {
      if case .entered(let digits) = event { return PIN(digits) }
    }
    throw TypistError.unexpected
  }

  /// As the decoder's `decode` does, with the one stop.
  private func send(_ usages: [UInt8]) throws {
    report.initializeMemory(as: UInt8.self, repeating: 0)
    for (index, usage) in usages.enumerated() { report[2 + index] = usage }
    Secrecy.hide(UnsafeRawBufferPointer(report))
    try decoder.classify(UnsafeRawBufferPointer(report))
    decoder.withKinds { Secrecy.reveal("kind of key", UnsafeRawBufferPointer($0)) }
    decoder.deliver(to: channel)
  }

  enum TypistError: Error { case unexpected }
}
