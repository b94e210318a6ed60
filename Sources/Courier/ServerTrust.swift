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
  /// Unix seconds: it cannot be earlier. A board without a clock starts in 1970; whether a certificate has expired is then
  /// judged at this time instead. One that was made later still is not too young.
  public var earliestNow: Int64
  /// Unix seconds: the latest time that this server vouched for before. Counts only while the board's clock is behind
  /// `earliestNow`, or the kernel calls it not synchronized.
  public var vouchedNow: Int64
  /// Without `pins`, those that the server was enrolled with before are taken away, instead of kept.
  public var dropsPins = false

  public init(pins: [String] = [], authorityFile: String? = nil, earliestNow: Int64 = 0, vouchedNow: Int64 = 0) {
    self.pins = pins
    self.authorityFile = authorityFile
    self.earliestNow = earliestNow
    self.vouchedNow = vouchedNow
  }

  /// For an enrollment at a server that is known already: without pins of its own, it keeps those of the earlier ones.
  public func keeping(pins known: [String]) -> ServerTrust {
    var trust = self
    if pins.isEmpty, !dropsPins { trust.pins = known }
    return trust
  }

  /// The time before which nothing is judged, in Unix seconds.
  /// - Parameters:
  ///   - boardTime: Unix seconds by the board's clock.
  ///   - isSynchronized: whether the kernel says that this clock follows a time source.
  public func floor(boardTime: Int64, isSynchronized: Bool) -> Int64 {
    boardTime < earliestNow || !isSynchronized ? max(earliestNow, vouchedNow) : earliestNow
  }
}
