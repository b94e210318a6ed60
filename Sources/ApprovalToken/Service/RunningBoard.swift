import Boards
import Cryptography
import FrontPanel
import MobileAuth
import ReferenceProtocol

/// The board this service runs on.
struct RunningBoard: Sendable {
  let profile: BoardProfile
  let timekeeper: any Timekeeper
  /// What the LED shows; on a real board, beside the LED itself.
  let indicator = SimulatedIndicator()
  let panel: FrontPanel
  private let button: SimulatedButton
  private let keypad: SimulatedKeypad
  /// Nil on a simulated board, and only there are the simulated button and keypad in use.
  private let hardware: HardwareBoard?

  /// - Throws: if USB cannot be used at all. Whatever else is wrong with a board the panel reports.
  init(_ profile: BoardProfile, timekeeper: any Timekeeper) throws(CommandFailure) {
    self.profile = profile
    self.timekeeper = timekeeper
    button = SimulatedButton(timekeeper: timekeeper)
    keypad = SimulatedKeypad(timekeeper: timekeeper)
    hardware = try Self.hardware(of: profile, timekeeper: timekeeper)
    let anyKeypad: (any Keypad)? = if let hardware { hardware.keypad } else { profile.hasKeypad ? keypad : nil }
    panel = FrontPanel(
      button: hardware?.button ?? button, indicator: ShownIndicator(shown: indicator, real: hardware?.indicator),
      sounder: hardware?.sounder, keypad: anyKeypad, timekeeper: timekeeper, timing: profile.timing,
      entry: profile.keypad?.entry ?? EntrySettings())
  }

  private static func hardware(
    of profile: BoardProfile, timekeeper: any Timekeeper
  ) throws(CommandFailure) -> HardwareBoard? {
    guard let lines = profile.lines else { return nil }
    do { return try HardwareBoard(lines, keypad: profile.keypad?.usb, timekeeper: timekeeper) } catch {
      throw CommandFailure(.unavailable, "\(error)")
    }
  }

  /// What is pressed from the control socket; a real button cannot be.
  var simulatedButton: SimulatedButton {
    get throws(CommandFailure) {
      guard hardware == nil else { throw CommandFailure(.usage, "the button of this board is real: press it") }
      return button
    }
  }

  var simulatedKeypad: SimulatedKeypad {
    get throws(CommandFailure) {
      guard profile.hasKeypad else { throw CommandFailure(.usage, "this board has no keypad") }
      guard hardware == nil else { throw CommandFailure(.usage, "the keypad of this board is real: type on it") }
      return keypad
    }
  }

  var keyDerivation: Scrypt.Parameters {
    guard let keypad = profile.keypad else { return .standard }
    return Scrypt.Parameters(cost: 1 << UInt64(keypad.scryptLog2N), blockSize: 8, parallelisation: 1)
  }

  var capabilities: ApprovalCapabilities {
    ApprovalCapabilities(
      display: .none, keypad: profile.hasKeypad, button: true, led: profile.colours == .rgb ? .rgb : .mono)
  }

  var led: LEDStatus {
    get async {
      let (indication, entries) = await panel.showingAfterEntries
      return LEDStatus(meaning: indication.meaning, colour: indicator.colour?.rawValue, entries: entries)
    }
  }
}

/// An LED, and what it shows for whoever cannot see it.
private struct ShownIndicator: Indicator {
  let shown: SimulatedIndicator
  let real: (any Indicator)?

  func light(_ colour: LEDColour?) {
    real?.light(colour)
    shown.light(colour)
  }
}
