// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import FrontPanel
import TOMLSyntax

/// A board profile, read from its `board.toml`. Every key is documented in `boards/README.md`.
package struct BoardProfile: Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable {
    /// A button and LED in memory, operated through the control socket. Commands and logs state that the board is
    /// simulated.
    case simulated
    /// A real button and a real LED on lines of a GPIO chip.
    case gpio
  }

  package enum Colors: String, Sendable, CaseIterable { case mono, rgb }

  /// The keypad and its settings.
  package struct Keypad: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
      /// Keys in memory, operated through the control socket.
      case simulated
      /// A boot keyboard on USB.
      case usb
    }

    package var kind: Kind
    /// Nil for a simulated keypad.
    package var usb: USB?
    package var entry = EntrySettings()
    /// The cost of key derivation from a PIN on this board: the binary logarithm of scrypt's N. 15 takes 32 MiB. It
    /// applies to PINs that are set from now on; each stored record contains its own parameters. 18 would take more
    /// memory than the key derivation allows.
    package var scryptLog2N = 15

    init(reading reader: inout TableReader) throws(TableReader.TableError) {
      kind = try reader.choice("kind", of: Kind.self)
      if kind == .usb { usb = try USB(reading: &reader) }
      try reader.checkRenamed("entry_idle_s", to: "entry_idle_seconds")
      try reader.duration("entry_idle_seconds", 5...120, &entry.idle)
      entry.feedback = try reader.choice("feedback", of: EntrySettings.Feedback.self, default: entry.feedback)
      if reader.has("scrypt_log2_n") { scryptLog2N = try reader.number("scrypt_log2_n", 14...17) }
      try reader.finish()
    }
  }

  package var name: String
  package var description: String
  package var kind: Kind
  package var colors: Colors
  /// Nil on a simulated board.
  package var lines: Lines?
  package var timing: GestureTiming
  /// Nil if the board has no keypad.
  package var keypad: Keypad?

  /// Whether the board has a keypad, so that the user can enter a PIN.
  package var hasKeypad: Bool { keypad != nil }

  /// The error of an invalid profile, with the file's name.
  package struct ProfileError: Error, Equatable, Sendable, CustomStringConvertible {
    package let file: String
    package let why: String

    package var description: String { "\(file): \(why)" }
  }

  /// - Parameters:
  ///   - toml: the text of the profile.
  ///   - file: the file's name, for errors.
  package init(parsing toml: String, file: String) throws(ProfileError) {
    let table: [String: TOMLValue]
    do { table = try TOMLSyntax.parse(toml) } catch { throw ProfileError(file: file, why: "not TOML: \(error)") }
    do throws(TableReader.TableError) {
      var reader = TableReader(table)
      name = try Self.line("name", in: &reader)
      description = try Self.line("description", in: &reader)
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

  private static func line(_ key: String, in reader: inout TableReader) throws(TableReader.TableError) -> String {
    let text = try reader.text(key)
    guard text.isSafeToShow else { throw reader.refusal(key, "must be one line without control characters") }
    return text
  }
}
