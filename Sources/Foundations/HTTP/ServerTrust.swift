// SPDX-License-Identifier: Apache-2.0
/// The rules for trusting a token server's certificate.
///
/// The chain must verify with the system's authorities or those in `authorityFile`; host name and dates are always
/// checked. With pins, the server's own key (SubjectPublicKeyInfo) must also match one of them, and only then may the
/// issuer be unknown: a pin replaces the authority, never the expiry date or the name.
package struct ServerTrust: Sendable, Equatable {
  /// Base64 of SHA-256 over the DER SubjectPublicKeyInfo of the server's certificate (RFC 7469 §2.4 form).
  package var pins: [String]
  /// A PEM file with additional authorities; nil for only those of the system.
  package var authorityFile: String?
  /// The earliest possible present time, in Unix seconds. A board without a battery-backed clock starts in 1970; expiry
  /// is then checked at this time, and a certificate with a later start of validity is accepted.
  package var earliestNow: Int64
  /// The latest time that this server has confirmed, in Unix seconds. Used only while the board's clock is behind
  /// `earliestNow` or not synchronized according to the kernel.
  package var vouchedNow: Int64
  /// Whether an enrollment without `pins` removes the pins of earlier enrollments instead of keeping them.
  package var dropsPins = false

  package init(pins: [String] = [], authorityFile: String? = nil, earliestNow: Int64 = 0, vouchedNow: Int64 = 0) {
    self.pins = pins
    self.authorityFile = authorityFile
    self.earliestNow = earliestNow
    self.vouchedNow = vouchedNow
  }

  /// The trust for another enrollment at a known server: without own pins it keeps the known ones.
  package func keeping(pins known: [String]) -> ServerTrust {
    var trust = self
    if pins.isEmpty, !dropsPins { trust.pins = known }
    return trust
  }

  /// The earliest time at which certificates are validated, in Unix seconds.
  /// - Parameters:
  ///   - boardTime: the board's clock in Unix seconds.
  ///   - isSynchronized: whether the kernel reports that this clock follows a time source.
  package func floor(boardTime: Int64, isSynchronized: Bool) -> Int64 {
    boardTime < earliestNow || !isSynchronized ? max(earliestNow, vouchedNow) : earliestNow
  }
}
