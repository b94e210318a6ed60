// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The wall clock. Only the server's clock decides when a request has expired.
package struct ServerClock: Sendable {
  package let now: @Sendable () -> Timestamp

  package init(now: @escaping @Sendable () -> Timestamp) {
    self.now = now
  }

  package var nowSeconds: Int64 { now().milliseconds / 1000 }

  package static let system = ServerClock {
    Timestamp(Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
  }
}

/// A monotonic clock, for measuring durations.
package enum Uptime {
  private static let start = ContinuousClock.now

  /// Since the first call.
  package static func now() -> Duration { ContinuousClock.now - start }
}
