// SPDX-License-Identifier: Apache-2.0
package import PINProtection

/// The operator's settings for servers that do not choose them themselves. A setting that no server of a token uses has
/// no effect.
package struct BackendSettings: Sendable, Equatable {
  /// The interval between polls of a server without a stream, while no request is open …
  package var idlePoll = Duration.seconds(10)
  /// … and while one is open, or was until recently.
  package var fastPoll = Duration.seconds(3)
  /// How long a request is shown, if its server does not report its lifetime.
  package var requestLifetime = Duration.seconds(120)
  /// The size of a new RSA key in bits: 2048 to 4096.
  package var keyBits = 3072
  /// Whether to use P-256 instead of RSA where the server supports both.
  package var prefersElliptic = false
  /// Whether login hints arrive by HTTP, for which a server needs an address of this token.
  package var receivesHints = false
  /// Whether a PIN replaces a biometric check; nil: the default of each kind of server.
  package var pinForBiometric: Bool?
  /// Whether `pending --json` has the numbers from which the user must choose the one that the login page shows.
  package var showsNumbers = false
  /// The length of a new PIN that this token verifies, within `PINPolicy.lengths`.
  package var pinDigits = 6
  /// The attempt limit: the number of wrong PINs in a row that wipes the account, 1 to 10.
  package var pinAttempts = 5
  /// The device name that servers show; nil for the program's name.
  package var deviceName: String?
  /// The serial number of the board, for servers that list it.
  package var boardSerial: String?

  package init() {}

  /// The policy for PINs that this token verifies: no sequences and few repetitions, because attackers try these first.
  package var pinPolicy: PINPolicy { Self.pinPolicy(digits: pinDigits) }

  /// - Parameter digits: within `PINPolicy.lengths`.
  package static func pinPolicy(digits: Int) -> PINPolicy {
    do { return try PINPolicy(length: digits, maxRepeats: 2, sequencesAllowed: false) } catch {
      preconditionFailure("\(error)")
    }
  }
}
