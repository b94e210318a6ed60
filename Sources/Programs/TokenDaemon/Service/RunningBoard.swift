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
  /// A copy of what the LED shows; on a hardware board, in addition to the LED. On a simulated board the buzzer, too.
  let indicator: SimulatedIndicator
  let panel: FrontPanel
  private let button: SimulatedButton
  private let keypad: SimulatedKeypad
  private let authenticators = SimulatedAuthenticators()
  /// Nil on a simulated board. The simulated button and keypad are used only there.
  private let hardware: HardwareBoard?

  /// - Parameter hearsUdev: whether udev's messages reach this process.
  /// - Throws: if USB is not usable at all. The panel reports other hardware faults.
  init(_ profile: BoardProfile, clock: any TokenClock, hearsUdev: Bool = true) throws(CommandError) {
    self.profile = profile
    indicator = SimulatedIndicator(clock: clock)
    button = SimulatedButton(clock: clock)
    keypad = SimulatedKeypad(clock: clock)
    hardware = try Self.hardware(of: profile, clock: clock, hearsUdev)
    let anyKeypad: (any Keypad)? = if let hardware { hardware.keypad } else { profile.hasKeypad ? keypad : nil }
    panel = FrontPanel(
      button: hardware?.button ?? button, indicator: ShownIndicator(shown: indicator, real: hardware?.indicator),
      sounder: hardware.map(\.sounder) ?? indicator, keypad: anyKeypad, clock: clock, timing: profile.timing,
      entry: profile.keypad?.entry ?? EntrySettings())
  }

  private static func hardware(
    of profile: BoardProfile, clock: any TokenClock, _ hearsUdev: Bool
  ) throws(CommandError) -> HardwareBoard? {
    guard let lines = profile.lines else { return nil }
    do { return try HardwareBoard(lines, keypad: profile.keypad?.usb, clock: clock, hearsUdev: hearsUdev) } catch {
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

  /// The simulated authenticators; there are none on a hardware board.
  var simulatedAuthenticators: SimulatedAuthenticators? { hardware == nil ? authenticators : nil }

  var keyDerivation: Scrypt.Parameters {
    guard let keypad = profile.keypad else { return .standard }
    return Scrypt.Parameters(cost: 1 << UInt64(keypad.scryptLog2N), blockSize: 8, parallelization: 1)
  }

  var capabilities: BoardCapabilities {
    BoardCapabilities(hasKeypad: profile.hasKeypad, hasColorLED: profile.colors == .rgb)
  }

  var led: LEDStatus { get async { led(indicator.color, in: await panel.ledContext) } }

  /// What the LED showed at a change.
  func led(at output: SimulatedIndicator.Output) -> LEDStatus { led(output.color, in: output.context) }

  private func led(_ color: LEDColor?, in context: LEDContext) -> LEDStatus {
    let row = context.indication.row
    return LEDStatus(
      meaning: row.meaning, color: row.color.rawValue, isLit: color != nil, count: context.indication.count,
      entries: context.entries)
  }

  /// The state of a simulated board at a change of its LED or buzzer.
  func state(at output: SimulatedIndicator.Output) -> BoardState {
    let (indication, timing) = (output.context.indication, profile.timing)
    return BoardState(
      led: led(at: output), atMilliseconds: output.atMilliseconds, pattern: indication.row.patternInWords,
      advice: indication.advice(hold: timing.acceptHold.inSeconds, veryLongHold: timing.reportHold.inSeconds),
      isSounding: output.isSounding, isChipConnected: output.isConnected,
      isKeypadConnected: profile.hasKeypad ? keypad.isConnected : nil,
      acceptHoldMilliseconds: timing.acceptHold.milliseconds, reportHoldMilliseconds: timing.reportHold.milliseconds)
  }
}

/// An LED with a readable copy of its state.
private struct ShownIndicator: Indicator {
  let shown: SimulatedIndicator
  let real: (any Indicator)?

  func light(_ color: LEDColor?, in context: LEDContext) {
    real?.light(color, in: context)
    shown.light(color, in: context)
  }
}
