// SPDX-License-Identifier: Apache-2.0
package import GPIO
import TOMLSyntax
package import USBKeypad

extension BoardProfile {
  /// The wiring of the board: which line of the GPIO chip has which function.
  package struct Lines: Sendable, Equatable {
    /// The possible labels of the chip, which differ between kernels.
    package var chips: [String]
    package var button: InputLine
    /// An optional second button that denies.
    package var denyButton: InputLine?
    /// One line, or the lines for red, green and blue.
    package var led: [OutputLine]
    /// A buzzer that sounds while its line is driven.
    package var buzzer: OutputLine?

    init(
      reading reader: inout TableReader, led ledReader: inout TableReader, colors: Colors
    ) throws(TableReader.TableError) {
      var gpio = try reader.table("gpio")
      chips = try gpio.texts("chips")
      try gpio.finish()
      button = try Self.input("button", in: &reader)
      if reader.has("deny_button") { denyButton = try Self.input("deny_button", in: &reader) }
      led = []
      for key in colors == .rgb ? ["red", "green", "blue"] : ["light"] {
        led.append(try Self.output(key, in: &ledReader))
      }
      if reader.has("buzzer") { buzzer = try Self.output("buzzer", in: &reader) }
      let offsets =
        [button.offset] + [denyButton?.offset].compactMap(\.self) + led.map(\.offset)
        + [buzzer?.offset].compactMap(\.self)
      guard Set(offsets).count == offsets.count else {
        throw reader.refusal("gpio", "gives one line two uses: \(offsets.map(String.init).joined(separator: ", "))")
      }
    }

    /// No known chip has more lines.
    private static let offsets = 0...1023

    private static func input(_ key: String, in reader: inout TableReader) throws(TableReader.TableError) -> InputLine {
      var table = try reader.table(key)
      var input = InputLine(
        offset: try table.number("line", offsets), name: try table.optionalText("name"),
        bias: try table.choice("bias", of: Bias.self, default: .asIs),
        // A contact to ground, the wiring of almost all buttons.
        isActiveLow: try table.flag("active_low", default: true))
      try table.duration("debounce_ms", 1...50, &input.debounce)
      try table.finish()
      return input
    }

    private static func output(_ key: String, in reader: inout TableReader) throws(TableReader.TableError) -> OutputLine
    {
      var table = try reader.table(key)
      let output = OutputLine(
        offset: try table.number("line", offsets), name: try table.optionalText("name"),
        isActiveLow: try table.flag("active_low", default: false))
      try table.finish()
      return output
    }
  }
}

extension BoardProfile.Keypad {
  /// Selects the USB device that is the keypad.
  package struct USB: Sendable, Equatable {
    package var selection: KeypadSelection
    /// Whether the kernel's drivers are attached to the keypad again when the service ends.
    package var givesBack: Bool

    init(reading reader: inout TableReader) throws(TableReader.TableError) {
      selection = KeypadSelection()
      if let text = try reader.optionalText("device") {
        guard let identity = KeypadSelection.Identity(text) else {
          throw reader.refusal("device", "must be vendor and product as lsusb shows them, like \"1a2c:0e24\"")
        }
        selection.identity = identity
      }
      if let port = try reader.optionalText("port") {
        guard KeypadSelection.isPort(port) else {
          throw reader.refusal("port", "must be the bus and the ports from its root, like \"1-1.2\"")
        }
        selection.port = port
      }
      givesBack = try reader.flag("give_back", default: false)
    }
  }
}
