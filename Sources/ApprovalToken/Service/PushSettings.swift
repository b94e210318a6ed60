import Boards
import Glibc
import PINProtection
import PingAMAdapter
import PrivacyIDEAAdapter

/// What this token's administrator has decided about push tokens of privacyIDEA and eduMFA, and push mechanisms of
/// PingAM: the table `[push]`.
///
/// ```toml
/// [push]
/// idle_s = 10                # seconds between polls while nothing is open …
/// fast_ms = 3000             # … and while something is, or was a minute ago
/// lifetime_s = 120           # so long a request is shown at most
/// key_bits = 3072            # of a new token's key
/// elliptic = false           # P-256 instead, where eduMFA takes it
/// pin_digits = 6             # where the server's administrator wants the token unlocked
/// pin_attempts = 5           # so many wrong ones in a row remove the account
/// listen = "127.0.0.1:8765"  # where privacyIDEA's HTTP gateway may tell of logins; not at all unless set
/// pin_for_biometric = true   # whether the PIN will do where a fingerprint is wanted; unset, only PingAM takes it
/// ```
struct PushSettings: Equatable {
  var pace = PollingPace()
  var enrolment = PushEnrolment.Settings()
  var listen: ListenAddress?
  /// Unset: as each kind of server has it.
  var pinForBiometric: Bool?
  var pinDigits = 6
  var pinAttempts = 5

  init() {}

  init(_ reader: inout TableReader) throws(TableReader.Refusal) {
    try reader.duration("idle_s", 2...600, &pace.idle)
    try reader.duration("fast_ms", 250...30_000, &pace.fast)
    try reader.duration("lifetime_s", 10...3600, &pace.lifetime)
    if let text = try reader.optionalText("listen") {
      guard let address = ListenAddress(text) else {
        throw TableReader.Refusal(why: "\"push.listen\" must be an address and a port like \"127.0.0.1:8765\"")
      }
      listen = address
      enrolment.hasMailbox = true
    }
    if reader.has("key_bits") { enrolment.keyBits = try reader.number("key_bits", 2048...4096) }
    enrolment.prefersElliptic = try reader.flag("elliptic", default: enrolment.prefersElliptic)
    if reader.has("pin_for_biometric") { pinForBiometric = try reader.flag("pin_for_biometric", default: false) }
    enrolment.takesPINForBiometric = pinForBiometric ?? false
    if reader.has("pin_digits") { pinDigits = try reader.number("pin_digits", PINPolicy.lengths) }
    if reader.has("pin_attempts") { pinAttempts = try reader.number("pin_attempts", 1...10) }
    try reader.finish()
  }

  /// For mechanisms of PingAM.
  var mechanism: PingAMEnrolment.Settings {
    var settings = PingAMEnrolment.Settings()
    settings.asksForPIN = pinForBiometric ?? false
    settings.takesPINForBiometric = pinForBiometric ?? true
    settings.deviceName = Self.hostName ?? settings.deviceName
    return settings
  }

  private static var hostName: String? {
    var name = [CChar](repeating: 0, count: 65)
    guard gethostname(&name, name.count - 1) == 0, name[0] != 0 else { return nil }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// No rows or repetitions that everybody tries first.
  var policy: PINPolicy { Self.policy(digits: pinDigits) }

  /// - Parameter digits: of `PINPolicy.lengths`.
  static func policy(digits: Int) -> PINPolicy {
    do { return try PINPolicy(length: digits, maxRepeats: 2, sequencesAllowed: false) } catch {
      preconditionFailure("\(error)")
    }
  }
}
