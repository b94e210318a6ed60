import Boards
import PINProtection
import PrivacyIDEAAdapter

/// What this token's administrator has decided about push tokens of privacyIDEA and eduMFA: the table `[push]`.
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
/// pin_for_biometric = false  # whether the PIN will do where a fingerprint is wanted
/// ```
struct PushSettings: Equatable {
  var pace = PollingPace()
  var enrolment = PushEnrolment.Settings()
  var pinDigits = 6
  var pinAttempts = 5

  init() {}

  init(_ reader: inout TableReader) throws(TableReader.Refusal) {
    try reader.duration("idle_s", 2...600, &pace.idle)
    try reader.duration("fast_ms", 250...30_000, &pace.fast)
    try reader.duration("lifetime_s", 10...3600, &pace.lifetime)
    if reader.has("key_bits") { enrolment.keyBits = try reader.number("key_bits", 2048...4096) }
    enrolment.prefersElliptic = try reader.flag("elliptic", default: enrolment.prefersElliptic)
    enrolment.takesPINForBiometric = try reader.flag("pin_for_biometric", default: enrolment.takesPINForBiometric)
    if reader.has("pin_digits") { pinDigits = try reader.number("pin_digits", PINPolicy.lengths) }
    if reader.has("pin_attempts") { pinAttempts = try reader.number("pin_attempts", 1...10) }
    try reader.finish()
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
