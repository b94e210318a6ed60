// SPDX-License-Identifier: Apache-2.0
package import FrontPanel
import GPIO
package import MobileAuth
import Secrets
import Synchronization
package import USBKeypad

/// The button or buttons, LED, optional buzzer and optional keypad of a real board. They report faults as events and
/// recover without further calls.
package final class HardwareBoard: Sendable {
  package let button: any Button
  package let indicator: any Indicator
  /// Nil if the board has no buzzer.
  package let sounder: (any Sounder)?
  package let keypad: (any Keypad)?

  private let bank: LineBank
  private let usb: USBKeypad?

  /// - Parameter hearsUdev: whether udev's messages reach this process.
  /// - Throws: if libusb cannot be initialized.
  package init(
    _ lines: BoardProfile.Lines, keypad: BoardProfile.Keypad.USB?, clock: any TokenClock, hearsUdev: Bool = true
  ) throws(USBKeypadError) {
    let button = GPIOButton(clock: clock)
    bank = LineBank(
      chip: lines.chips, inputs: [lines.button] + [lines.denyButton].compactMap(\.self),
      outputs: lines.led + [lines.buzzer].compactMap(\.self)
    ) { button.hear($0, $1) }
    self.button = button
    indicator = GPIOIndicator(bank: bank, isRGB: lines.led.count == 3)
    sounder = lines.buzzer.map { [bank] _ in GPIOSounder(bank: bank, output: lines.led.count) }
    let channel = keypad.map { _ in KeypadChannel(clock: clock) }
    self.keypad = channel
    if let keypad, let channel {
      usb = try USBKeypad(keypad.selection, givesBack: keypad.givesBack, hearsUdev: hearsUdev, into: channel)
    } else {
      usb = nil
    }
  }

  /// The present faults as text for the operator; empty if there are none.
  package var troubles: [String] { [bank.trouble.map { "\($0)" }, usb?.trouble.map { "\($0)" }].compactMap(\.self) }

  /// Switches the LED off and releases all lines and the keypad.
  package func close() {
    usb?.close()
    bank.close()
  }
}

/// The board's LED. Its lines are only on or off: dim colors have full brightness, and orange is shown as amber.
private struct GPIOIndicator: Indicator {
  let bank: LineBank
  let isRGB: Bool

  func light(_ color: LEDColor?, in context: LEDContext) {
    let levels = isRGB ? color.redGreenBlue : [color != nil]
    for (line, isOn) in levels.enumerated() { bank.set(line, isOn) }
  }
}

/// The board's buzzer, which generates its own tone.
private struct GPIOSounder: Sounder {
  let bank: LineBank
  let output: Int

  func sound(_ isOn: Bool) { bank.set(output, isOn) }
}

extension LEDColor? {
  fileprivate var redGreenBlue: [Bool] {
    switch self {
    case nil: [false, false, false]
    case .red, .dimRed: [true, false, false]
    case .green, .dimGreen: [false, true, false]
    case .blue: [false, false, true]
    case .amber, .orange: [true, true, false]
    // Lines are only on or off, so these two colors look the same and differ only in their patterns.
    case .magenta, .violet: [true, false, true]
    case .white: [true, true, true]
    }
  }
}
