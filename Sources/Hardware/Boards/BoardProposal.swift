// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import GPIO
package import USBKeypad

/// A proposed profile for the hardware found on a machine. Pure. The wiring of a line cannot be detected. For the chip
/// of a known board, that board's wiring is proposed. Otherwise lines are chosen by their names, and the rest are
/// suggestions for new wiring.
package struct BoardProposal: Sendable, Equatable {
  /// The name of the known board with such a chip; nil if there is none or several.
  package let board: String?
  /// The text of the profile; nil if no chip has enough free lines.
  package let toml: String?

  /// - Parameter known: the profiles of kind `gpio`, the most likely first.
  package init(chips: [ChipDescription], keypads: [KeypadDescription], known: [BoardProfile]) {
    let keypad = Self.table(for: keypads)
    for chip in chips {
      let alike = known.filter { $0.lines?.chips.contains(chip.label) == true }
      guard let profile = alike.first, let lines = profile.lines else { continue }
      board = alike.count == 1 ? profile.name : nil
      let names = alike.map(\.name).joined(separator: ", ")
      toml = Self.text("a chip as on \(names), wired as boards/\(profile.name)/README.md says", chip, lines) + keypad
      return
    }
    board = nil
    for chip in chips {
      guard let lines = BoardProfile.Lines(suggestedFor: chip) else { continue }
      toml = Self.text("lines by name, or the first free ones: set those you use", chip, lines) + keypad
      return
    }
    toml = nil
  }

  private static func text(_ source: String, _ chip: ChipDescription, _ lines: BoardProfile.Lines) -> String {
    var parts = [
      """
      # Proposed by `approval-token board probe`: \(source).
      name = "my-board"
      description = \(quoted("Button and LED on \(chip.label.sanitized)"))
      kind = "gpio"

      [gpio]
      chips = [\(quoted(chip.label))]

      [button]
      \(keys(of: lines.button))
      """
    ]
    if let deny = lines.denyButton { parts.append("[deny_button]\n\(keys(of: deny))") }
    let names = lines.led.count == 3 ? ["red", "green", "blue"] : ["light"]
    let led = zip(names, lines.led).map { "\($0) = { \(keys(of: $1).joined(separator: ", ")) }" }
    parts.append("[led]\ncolors = \"\(lines.led.count == 3 ? "rgb" : "mono")\"\n\(led.joined(separator: "\n"))")
    if let buzzer = lines.buzzer { parts.append("[buzzer]\n\(keys(of: buzzer).joined(separator: "\n"))") }
    return parts.joined(separator: "\n\n") + "\n"
  }

  private static func keys(of input: InputLine) -> String {
    var keys = ["line = \(input.offset)"]
    if let name = input.name { keys.append("name = \(quoted(name))") }
    keys += ["bias = \"\(input.bias.rawValue)\"", "active_low = \(input.isActiveLow)"]
    return keys.joined(separator: "\n")
  }

  private static func keys(of output: OutputLine) -> [String] {
    var keys = ["line = \(output.offset)"]
    if let name = output.name { keys.append("name = \(quoted(name))") }
    return output.isActiveLow ? keys + ["active_low = true"] : keys
  }

  /// The keypad table. With several keyboards the port is included, to identify the keypad.
  private static func table(for keypads: [KeypadDescription]) -> String {
    guard let keypad = keypads.first else {
      return
        "\n# No keypad is plugged in. Requests that require a PIN need one:\n# [keypad]\n# kind = \"usb\"\n"
    }
    let port = keypads.count > 1 ? "port = \(quoted(keypad.port))\n" : ""
    return "\n[keypad]\nkind = \"usb\"\ndevice = \"\(keypad.identity)\"\n\(port)"
  }

  /// The text as a TOML basic string. Control characters, which a name from the device tree should not have, are
  /// replaced with `?`.
  private static func quoted(_ text: String) -> String {
    let escaped = text.unicodeScalars.map { scalar in
      switch scalar {
      case "\"", "\\": "\\\(scalar)"
      case _ where scalar.properties.generalCategory == .control: "?"
      default: "\(scalar)"
      }
    }
    return "\"\(escaped.joined())\""
  }
}

extension BoardProfile.Lines {
  /// Nil if the chip has too few free lines for a button and a one-color LED.
  fileprivate init?(suggestedFor chip: ChipDescription) {
    var free = chip.lines.filter { $0.consumer == nil }
    /// The first free line whose name contains `word`; with `orAny`, otherwise the first free line.
    func take(_ word: String, orAny: Bool = false) -> ChipDescription.Line? {
      let named = free.firstIndex { $0.name.lowercased().contains(word) }
      guard let index = named ?? (orAny ? free.indices.first : nil) else { return nil }
      return free.remove(at: index)
    }
    func input(_ line: ChipDescription.Line) -> InputLine {
      InputLine(offset: line.offset, name: line.profileName, bias: .pullUp, isActiveLow: true)
    }
    func output(_ line: ChipDescription.Line) -> OutputLine {
      OutputLine(offset: line.offset, name: line.profileName)
    }
    let deny = take("deny")
    let buzzer = take("buzzer")
    let named = ["red", "green", "blue"].compactMap { take($0) }
    guard let button = take("button", orAny: true) else { return nil }
    let led = named.count == 3 ? named : [named.first ?? take("led", orAny: true)].compactMap(\.self)
    guard !led.isEmpty else { return nil }
    chips = [chip.label]
    self.button = input(button)
    denyButton = deny.map(input)
    self.led = led.map(output)
    self.buzzer = buzzer.map(output)
  }
}

extension ChipDescription.Line {
  /// The name to verify in the profile; nil if the line has no name.
  fileprivate var profileName: String? { name.isEmpty ? nil : name }
}
