public import FrontPanel
import GPIO
public import MobileAuth
import Secrets
import Synchronization
public import USBKeypad

/// The panel of a real board: its button or two, its LED, and its keypad if it has one. They report what goes wrong with
/// them as events, and recover by themselves.
public final class HardwareBoard: Sendable {
  public let button: any Button
  public let indicator: any Indicator
  /// Nil if the board has no buzzer.
  public let sounder: (any Sounder)?
  public let keypad: (any Keypad)?

  private let bank: LineBank
  private let usb: USBKeypad?

  /// - Throws: if USB cannot be used at all.
  public init(
    _ lines: BoardProfile.Lines, keypad: BoardProfile.Keypad.USB?, timekeeper: any Timekeeper
  ) throws(USBKeypadError) {
    let button = GPIOButton(timekeeper: timekeeper)
    bank = LineBank(
      chip: lines.chips, inputs: [lines.button] + [lines.denyButton].compactMap(\.self),
      outputs: lines.led + [lines.buzzer].compactMap(\.self)
    ) { button.hear($0, $1) }
    self.button = button
    indicator = GPIOIndicator(bank: bank, isRGB: lines.led.count == 3)
    sounder = lines.buzzer.map { [bank] _ in GPIOSounder(bank: bank, output: lines.led.count) }
    let channel = keypad.map { _ in KeypadChannel(timekeeper: timekeeper) }
    self.keypad = channel
    if let keypad, let channel {
      usb = try USBKeypad(keypad.selection, givesBack: keypad.givesBack, into: channel)
    } else {
      usb = nil
    }
  }

  /// What is wrong now, for people; empty if all is well.
  public var troubles: [String] { [bank.trouble.map { "\($0)" }, usb?.trouble.map { "\($0)" }].compactMap(\.self) }

  /// Gives everything back, with the LED dark.
  public func close() {
    usb?.close()
    bank.close()
  }
}

/// The board's button, made of one line or two.
private final class GPIOButton: Button {
  let events: AsyncStream<ButtonEvent>
  private let continuation: AsyncStream<ButtonEvent>.Continuation
  private let timekeeper: any Timekeeper
  private let lines = Mutex(TwoButtons())

  init(timekeeper: any Timekeeper) {
    self.timekeeper = timekeeper
    (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(64))
  }

  /// Edges are dated by the kernel's monotonic clock, and the panel by its timekeeper's.
  func hear(_ input: Int, _ event: InputEvent) {
    guard let line = TwoButtons.Line(rawValue: input) else { return }
    let now = timekeeper.now
    let monotonic = monotonicTime()
    for event in lines.withLock({ $0.hear(line, event) { now + ($0 - monotonic) } }) { continuation.yield(event) }
  }
}

/// The board's LED. Its lines are on or off: dim is as bright as bright, and orange is amber.
private struct GPIOIndicator: Indicator {
  let bank: LineBank
  let isRGB: Bool

  func light(_ colour: LEDColour?) {
    let levels = isRGB ? colour.redGreenBlue : [colour != nil]
    for (line, isOn) in levels.enumerated() { bank.set(line, isOn) }
  }
}

/// The board's buzzer, one that makes its own tone.
private struct GPIOSounder: Sounder {
  let bank: LineBank
  let output: Int

  func sound(_ isOn: Bool) { bank.set(output, isOn) }
}

extension LEDColour? {
  fileprivate var redGreenBlue: [Bool] {
    switch self {
    case nil: [false, false, false]
    case .red, .dimRed: [true, false, false]
    case .green, .dimGreen: [false, true, false]
    case .blue: [false, false, true]
    case .amber, .orange: [true, true, false]
    // Lines are on or off: these two differ in their patterns alone.
    case .magenta, .violet: [true, false, true]
    case .white: [true, true, true]
    }
  }
}
