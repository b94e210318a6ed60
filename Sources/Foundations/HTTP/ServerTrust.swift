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
  /// The origins that requests may go to, as `origin(of:)` returns them; nil for any https address.
  package var origins: Set<String>?
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

  /// The trust for requests to the origins of these addresses only.
  package func limited(to addresses: [String]) -> ServerTrust {
    var trust = self
    trust.origins = Set(addresses.compactMap { Self.origin(of: $0) })
    return trust
  }

  /// - Throws: `.unsendable` if the request may not go to its address.
  package func check(_ request: HTTPRequest) throws(HTTPTransportError) {
    guard request.url.hasPrefix("https://") else { throw .unsendable("\(request.url) is not an https address") }
    guard let origins else { return }
    guard let origin = Self.origin(of: request.url), origins.contains(origin) else {
      throw .unsendable("\(request.url) is not an address of this account's server")
    }
  }

  /// The beginning of an https address up to its path, in lower case and without the port 443; nil for other text, and
  /// for one with a character that libraries could read in different ways.
  package static func origin(of address: String) -> String? {
    let scheme = "https://"
    guard address.utf8.starts(with: scheme.utf8) else { return nil }
    let authority = address.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" && $0 != "#" }.lowercased()
    guard !authority.isEmpty,
      authority.utf8.allSatisfy({
        (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) || $0 >= 0x80 || "-._:[]".utf8.contains($0)
      })
    else { return nil }
    return scheme + (authority.hasSuffix(":443") ? String(authority.dropLast(4)) : authority)
  }
}
