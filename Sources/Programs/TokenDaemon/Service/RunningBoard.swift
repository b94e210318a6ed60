// SPDX-License-Identifier: Apache-2.0
import Boards
import ControlProtocol
import Cryptography
import FrontPanel
import MobileAuth
import ServerBackends

/// The board this service runs on.
struct RunningBoard: Sendable {
  let profile: BoardProfile
  /// A copy of what the LED shows; on a hardware board, in addition to the LED.
  let indicator = SimulatedIndicator()
  let panel: FrontPanel
  private let button: SimulatedButton
  private let keypad: SimulatedKeypad
  /// Nil on a simulated board. The simulated button and keypad are used only there.
  private let hardware: HardwareBoard?

  /// - Throws: if USB is not usable at all. The panel reports other hardware faults.
  init(_ profile: BoardProfile, clock: any TokenClock) throws(CommandError) {
    self.profile = profile
    button = SimulatedButton(clock: clock)
    keypad = SimulatedKeypad(clock: clock)
    hardware = try Self.hardware(of: profile, clock: clock)
    let anyKeypad: (any Keypad)? = if let hardware { hardware.keypad } else { profile.hasKeypad ? keypad : nil }
    panel = FrontPanel(
      button: hardware?.button ?? button, indicator: ShownIndicator(shown: indicator, real: hardware?.indicator),
      sounder: hardware?.sounder, keypad: anyKeypad, clock: clock, timing: profile.timing,
      entry: profile.keypad?.entry ?? EntrySettings())
  }

  private static func hardware(
    of profile: BoardProfile, clock: any TokenClock
  ) throws(CommandError) -> HardwareBoard? {
    guard let lines = profile.lines else { return nil }
    do { return try HardwareBoard(lines, keypad: profile.keypad?.usb, clock: clock) } catch {
      throw CommandError(.unavailable, "\(error)")
    }
  }

  /// The button that the control socket presses. A hardware button cannot be simulated.
  var simulatedButton: SimulatedButton {
    get throws(CommandError) {
      guard hardware == nil else {
        throw CommandError(
          .usage, "this board has a hardware button: press it; `simulate` is for the simulated board only")
      }
      return button
    }
  }

  var simulatedKeypad: SimulatedKeypad {
    get throws(CommandError) {
      guard profile.hasKeypad else { throw CommandError(.usage, "this board has no keypad") }
      guard hardware == nil else {
        throw CommandError(
          .usage, "this board has a hardware keypad: type on it; `simulate` is for the simulated board only")
      }
      return keypad
    }
  }

  var keyDerivation: Scrypt.Parameters {
    guard let keypad = profile.keypad else { return .standard }
    return Scrypt.Parameters(cost: 1 << UInt64(keypad.scryptLog2N), blockSize: 8, parallelization: 1)
  }

  var capabilities: BoardCapabilities {
    BoardCapabilities(hasKeypad: profile.hasKeypad, hasColorLED: profile.colors == .rgb)
  }

  var led: LEDStatus {
    get async {
      let (indication, entries) = await panel.showingAfterEntries
      let row = indication.row
      return LEDStatus(
        meaning: row.meaning, color: row.color.rawValue, isLit: indicator.color != nil, count: indication.count,
        entries: entries)
    }
  }
}

/// An LED with a readable copy of its state.
private struct ShownIndicator: Indicator {
  let shown: SimulatedIndicator
  let real: (any Indicator)?

  func light(_ color: LEDColor?) {
    real?.light(color)
    shown.light(color)
  }
}
