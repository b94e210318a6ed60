// SPDX-License-Identifier: Apache-2.0
import GPIO
import USBKeypad

/// The hardware on this machine that a board profile could use. Opens no line and no keypad.
package struct BoardProbe: Encodable, Sendable {
  package struct Chip: Encodable, Sendable {
    package let path: String
    package let label: String
    package let lines: [Line]
  }

  package struct Line: Encodable, Sendable {
    package let line: Int
    package let name: String?
    /// The consumer: the name of the program or driver that has requested the line.
    package let user: String?
    package let output: Bool
  }

  package struct Keypad: Encodable, Sendable {
    package let device: String
    package let port: String
    package let path: String
    /// Whether the device can be used as the keypad.
    package let bootKeyboard: Bool
    /// Whether it has the interface of a security key: then it is used only if `keypad.device` names it.
    package let securityKey: Bool
    /// The number of HID interfaces. All of them would be claimed.
    package let interfaces: Int

    enum CodingKeys: String, CodingKey {
      case device, port, path
      case bootKeyboard = "boot_keyboard"
      case securityKey = "security_key"
      case interfaces
    }
  }

  package let chips: [Chip]
  /// All devices with an HID interface.
  package let keypads: [Keypad]
  /// Devices that could not be examined, with the error and the remedy.
  package let obstacles: [String]
  /// The name of the known board that has such a chip.
  package let board: String?
  /// A proposed profile, as TOML.
  package let profile: String?

  package static func look() -> BoardProbe {
    var obstacles: [String] = []
    var chips: [ChipDescription] = []
    for result in describeChips() {
      switch result {
      case .success(let chip): chips.append(chip)
      case .failure(let error): obstacles.append("\(error): \(error.remedy)")
      }
    }
    var devices: [KeypadDescription] = []
    do { devices = try describeHIDDevices() } catch { obstacles.append("USB: \(error)") }
    let known = BoardCatalog.all().compactMap { try? $0.profile.get() }
    let proposal = BoardProposal(chips: chips, keypads: devices.filter(\.isKeypad), known: known)
    return BoardProbe(
      chips: chips.map(Chip.init), keypads: devices.map(Keypad.init), obstacles: obstacles, board: proposal.board,
      profile: proposal.toml)
  }

  /// A description for the operator, one element per line.
  package var lines: [String] {
    var text: [String] = []
    for chip in chips {
      text.append("chip    \(chip.path)  label \"\(chip.label)\", \(chip.lines.count) lines")
      text += chip.lines.map { line in
        "  line \(line.line)  " + (line.name.map { "\"\($0)\"" } ?? "without a name")
          + (line.user.map { ", used by \"\($0)\"" } ?? "")
      }
    }
    if chips.isEmpty { text.append("no GPIO chip") }
    text += keypads.map { keypad in
      "keypad  \(keypad.device) at \(keypad.port)  "
        + (keypad.bootKeyboard ? "boot keyboard" : "not a boot keyboard, cannot be the keypad")
        + (keypad.bootKeyboard && keypad.securityKey
          ? " with the interface of a security key: the keypad only if keypad.device names it" : "")
    }
    if keypads.isEmpty { text.append("no keypad") }
    text += obstacles.map { "not seen: \($0)" }
    if let board { text.append("looks like the board \(board): approval-token board check \(board)") }
    return text
  }
}

extension BoardProbe.Chip {
  fileprivate init(_ chip: ChipDescription) {
    self.init(
      path: chip.path, label: chip.label,
      lines: chip.lines.map {
        .init(line: $0.offset, name: $0.name.isEmpty ? nil : $0.name, user: $0.consumer, output: $0.isOutput)
      })
  }
}

extension BoardProbe.Keypad {
  fileprivate init(_ device: KeypadDescription) {
    self.init(
      device: "\(device.identity)", port: device.port, path: device.path, bootKeyboard: device.isBootKeyboard,
      securityKey: device.isSecurityKey, interfaces: device.hidInterfaces.count)
  }
}
