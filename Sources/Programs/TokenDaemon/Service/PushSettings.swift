// SPDX-License-Identifier: Apache-2.0
import Glibc
import NetworkDaemon
import PINProtection
import ServerBackends
import TOMLSyntax

/// The operator's settings for push tokens of privacyIDEA and eduMFA, and for push mechanisms of PingAM: the table
/// `[push]`.
///
/// ```toml
/// [push]
/// idle_seconds = 10          # seconds between polls while no request is open …
/// fast_ms = 3000             # … and while one is open, or was open in the last minute
/// lifetime_seconds = 120     # seconds a request is shown at most
/// key_bits = 3072            # of a new token's key
/// elliptic = false           # use P-256 instead of RSA where eduMFA accepts it
/// pin_digits = 6             # length of a new PIN, where the token verifies it
/// pin_attempts = 5           # the number of consecutive wrong PINs that removes the account
/// listen = "127.0.0.1:8765"  # address for login hints from privacyIDEA's HTTP gateway; unset: no listener
/// show_numbers = false       # whether `pending --json` has the numbers of PingAM's number challenges
/// pin_for_biometric = true   # whether a PIN replaces a fingerprint; unset: for PingAM only
/// ```
struct PushSettings: Equatable {
  var backends = BackendSettings()
  var listen: ListenAddress?

  init() {}

  init(_ reader: inout TableReader) throws(TableReader.TableError) {
    try reader.checkRenamed("idle_s", to: "idle_seconds")
    try reader.checkRenamed("lifetime_s", to: "lifetime_seconds")
    try reader.duration("idle_seconds", 2...600, &backends.idlePoll)
    try reader.duration("fast_ms", 250...30_000, &backends.fastPoll)
    try reader.duration("lifetime_seconds", 10...3600, &backends.requestLifetime)
    if let text = try reader.optionalText("listen") {
      guard let address = ListenAddress(text) else {
        throw TableReader.TableError(
          why: "\"push.listen\" must be an IP address and a port, for example \"127.0.0.1:8765\"")
      }
      listen = address
      backends.receivesHints = true
    }
    if reader.has("key_bits") { backends.keyBits = try reader.number("key_bits", 2048...4096) }
    backends.prefersElliptic = try reader.flag("elliptic", default: backends.prefersElliptic)
    if reader.has("pin_for_biometric") {
      backends.pinForBiometric = try reader.flag("pin_for_biometric", default: false)
    }
    backends.showsNumbers = try reader.flag("show_numbers", default: backends.showsNumbers)
    if reader.has("pin_digits") { backends.pinDigits = try reader.number("pin_digits", PINPolicy.lengths) }
    if reader.has("pin_attempts") { backends.pinAttempts = try reader.number("pin_attempts", 1...10) }
    try reader.finish()
  }
}

/// The name of this machine; nil if it has none.
var hostName: String? {
  var name = [CChar](repeating: 0, count: 65)
  guard gethostname(&name, name.count - 1) == 0, name[0] != 0 else { return nil }
  return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}
