/// What makes a token server's certificate the right one.
///
/// The chain must verify against the system's authorities or `authorityFile`, host name and dates always. With pins,
/// the server's own key (SubjectPublicKeyInfo) must also be one of them, and only then may the issuer be unknown:
/// a pin replaces the authority, never the expiry date or the name.
public struct ServerTrust: Sendable, Equatable {
  /// Base64 of SHA-256 over the DER SubjectPublicKeyInfo of the server's certificate (RFC 7469 §2.4 form).
  public var pins: [String]
  /// A PEM file with more authorities, or nil for the system's only.
  public var authorityFile: String?
  /// Unix seconds. A board without a clock starts in 1970; whether a certificate has expired is then judged at this time
  /// instead, the latest moment this token knows to have passed. One that was made later still is not too young.
  public var earliestNow: Int64

  public init(pins: [String] = [], authorityFile: String? = nil, earliestNow: Int64 = 0) {
    self.pins = pins
    self.authorityFile = authorityFile
    self.earliestNow = earliestNow
  }
}
