// SPDX-License-Identifier: Apache-2.0
public import FrontPanel
import TOMLSyntax

/// A board profile, read from its `board.toml`. Every key is documented in `boards/README.md`.
public struct BoardProfile: Sendable, Equatable {
  public enum Kind: String, Sendable, CaseIterable {
    /// A button and LED in memory, operated through the control socket. Commands and logs state that the board is
    /// simulated.
    case simulated
    /// A real button and a real LED on lines of a GPIO chip.
    case gpio
  }

  public enum Colors: String, Sendable, CaseIterable { case mono, rgb }

  /// The keypad and its settings.
  public struct Keypad: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
      /// Keys in memory, operated through the control socket.
      case simulated
      /// A boot keyboard on USB.
      case usb
    }

    public var kind: Kind
    /// Nil for a simulated keypad.
    public var usb: USB?
    public var entry = EntrySettings()
    /// The cost of key derivation from a PIN on this board: the binary logarithm of scrypt's N. 15 takes 32 MiB. It
    /// applies to PINs that are set from now on; each stored record contains its own parameters.
    public var scryptLog2N = 15

    init(reading reader: inout TableReader) throws(TableReader.TableError) {
      kind = try reader.choice("kind", of: Kind.self)
      if kind == .usb { usb = try USB(reading: &reader) }
      try reader.duration("entry_idle_s", 5...120, &entry.idle)
      entry.feedback = try reader.choice("feedback", of: EntrySettings.Feedback.self, default: entry.feedback)
      if reader.has("scrypt_log2_n") { scryptLog2N = try reader.number("scrypt_log2_n", 14...18) }
      try reader.finish()
    }
  }

  public var name: String
  public var description: String
  public var kind: Kind
  public var colors: Colors
  /// Nil on a simulated board.
  public var lines: Lines?
  public var timing: GestureTiming
  /// Nil if the board has no keypad.
  public var keypad: Keypad?

  /// Whether the board has a keypad, so that the user can enter a PIN.
  public var hasKeypad: Bool { keypad != nil }

  /// The error of an invalid profile, with the file's name.
  public struct ProfileError: Error, Equatable, Sendable, CustomStringConvertible {
    public let file: String
    public let why: String

    public var description: String { "\(file): \(why)" }
  }

  /// - Parameters:
  ///   - toml: the text of the profile.
  ///   - file: the file's name, for errors.
  public init(parsing toml: String, file: String) throws(ProfileError) {
    let table: [String: TOMLValue]
    do { table = try TOMLSyntax.parse(toml) } catch { throw ProfileError(file: file, why: "not TOML: \(error)") }
    do throws(TableReader.TableError) {
      var reader = TableReader(table)
      name = try reader.text("name")
      description = try reader.text("description")
      kind = try reader.choice("kind", of: Kind.self)
      var led = try reader.table("led")
      try led.checkRenamed("colours", to: "colors")
      colors = try led.choice("colors", of: Colors.self, default: .rgb)
      if kind == .gpio { lines = try Lines(reading: &reader, led: &led, colors: colors) }
      try led.finish()
      var gestures = try reader.table("gestures")
      timing = GestureTiming()
      try gestures.duration("guard_time_ms", 300...5000, &timing.guardTime)
      try gestures.duration("accept_hold_ms", 500...3000, &timing.acceptHold)
      try gestures.duration("double_press_ms", 300...1000, &timing.doublePress)
      try gestures.duration("report_hold_ms", 4000...9000, &timing.reportHold)
      try gestures.duration("stuck_ms", 10_000...60_000, &timing.stuck)
      try gestures.finish()
      if reader.has("keypad") {
        var table = try reader.table("keypad")
        keypad = try Keypad(reading: &table)
        guard (keypad?.kind == .simulated) == (kind == .simulated) else {
          throw reader.refusal("keypad.kind", "must be simulated on a simulated board, and there alone")
        }
      }
      try reader.finish()
    } catch { throw ProfileError(file: file, why: error.why) }
  }
}
