// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The wall clock, in milliseconds since 1970. Only the server's clock decides when a request has expired.
struct ServerClock: Sendable {
  let nowMs: @Sendable () -> Int64

  var nowSeconds: Int64 { nowMs() / 1000 }

  static let system = ServerClock { Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)) }
}

/// A monotonic clock, for measuring durations.
enum Uptime {
  private static let start = ContinuousClock.now

  static func nowMs() -> Int64 {
    let elapsed = (ContinuousClock.now - start).components
    return elapsed.seconds * 1000 + elapsed.attoseconds / 1_000_000_000_000_000
  }
}
