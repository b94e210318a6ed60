public import FrontPanel
import TOMLKit
import TOMLSyntax

/// One board, as its `board.toml` describes it. Every key is documented in `boards/README.md`.
public struct BoardProfile: Sendable, Equatable {
  public enum Kind: String, Sendable, CaseIterable {
    /// Button and LED in memory, worked through the control socket. Says that it is simulated.
    case simulated
    /// A real button and a real LED on lines of a GPIO chip.
    case gpio
  }

  public enum Colours: String, Sendable, CaseIterable { case mono, rgb }

  /// The keypad, and how one types on it.
  public struct Keypad: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
      /// Keys in memory, worked through the control socket.
      case simulated
      /// A boot keyboard on USB.
      case usb
    }

    public var kind: Kind
    /// Nil unless it is on USB.
    public var usb: USB?
    public var entry = EntrySettings()
    /// What a PIN's key derivation costs on this board: the binary logarithm of scrypt's N. 15 takes 32 MiB. Holds for
    /// PINs that are chosen from now on; each record says what it was made with.
    public var scryptLog2N = 15

    init(reading reader: inout TableReader) throws(TableReader.Refusal) {
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
  public var colours: Colours
  /// Nil on a simulated board.
  public var lines: Lines?
  public var timing: GestureTiming
  /// Nil if the board has none.
  public var keypad: Keypad?

  /// Whether a PIN can be typed.
  public var hasKeypad: Bool { keypad != nil }

  /// What is wrong with a profile, and where.
  public struct Invalid: Error, Equatable, Sendable, CustomStringConvertible {
    public let file: String
    public let why: String

    public var description: String { "\(file): \(why)" }
  }

  /// - Parameters:
  ///   - toml: the profile's text.
  ///   - file: its name, for errors.
  public init(parsing toml: String, file: String) throws(Invalid) {
    let table: TOMLTable
    do {
      try TOMLSyntax.check(toml)
      table = try TOMLTable(string: toml)
    } catch { throw Invalid(file: file, why: "not TOML: \(error)") }
    do throws(TableReader.Refusal) {
      var reader = TableReader(table)
      name = try reader.text("name")
      description = try reader.text("description")
      kind = try reader.choice("kind", of: Kind.self)
      var led = try reader.table("led")
      colours = try led.choice("colours", of: Colours.self, default: .rgb)
      if kind == .gpio { lines = try Lines(reading: &reader, led: &led, colours: colours) }
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
    } catch { throw Invalid(file: file, why: error.why) }
  }
}
