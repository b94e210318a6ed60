// SPDX-License-Identifier: Apache-2.0
/// `iat` and `exp` of an assertion (RFC 7519 §4.1), in seconds since 1970: at most ten minutes apart and both within
/// the years 1970 to 9999, so that no comparison with a clock overflows 64 bits.
struct AssertionLifetime {
  /// The maximum lifetime and clock error, in seconds.
  private static let limit: Int64 = 600
  private static let times = 0...JSON.latestSecond

  private let issuedAt: Int64
  private let expiresAt: Int64

  /// Nil if the times are out of range, in the wrong order or too far apart.
  init?(iat: Int64, exp: Int64) {
    guard Self.times.contains(iat), Self.times.contains(exp), exp >= iat, exp - iat <= Self.limit else { return nil }
    issuedAt = iat
    expiresAt = exp
  }

  /// - Parameter now: seconds since 1970 by the server's clock.
  func isCurrent(at now: Int64) -> Bool {
    guard Self.times.contains(now) else { return false }
    return abs(issuedAt - now) <= Self.limit && expiresAt > now - Self.limit
  }
}
