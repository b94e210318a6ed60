// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The wall clock, in milliseconds since 1970. Only the server's clock decides when a request has expired.
package struct ServerClock: Sendable {
  package let nowMs: @Sendable () -> Int64

  package init(nowMs: @escaping @Sendable () -> Int64) {
    self.nowMs = nowMs
  }

  package var nowSeconds: Int64 { nowMs() / 1000 }

  package static let system = ServerClock { Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)) }
}

/// A monotonic clock, for measuring durations.
package enum Uptime {
  private static let start = ContinuousClock.now

  package static func nowMs() -> Int64 {
    let elapsed = (ContinuousClock.now - start).components
    return elapsed.seconds * 1000 + elapsed.attoseconds / 1_000_000_000_000_000
  }
}
