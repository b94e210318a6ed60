// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The clock of the domain. Deadlines are monotonic. The wall clock is for display and logs only, because a board
/// without a clock chip starts in 1970.
package protocol TokenClock: Sendable {
  /// Monotonic time, including time in suspend.
  var now: MonotonicInstant { get }
  /// Milliseconds since 1970, by the board's wall clock. Not used for decisions.
  var wallClockMilliseconds: Int64 { get }
  /// Returns at `moment`, or at once if it has passed. Throws `CancellationError` when the task is canceled.
  func sleep(until moment: MonotonicInstant) async throws
}

/// A point on the monotonic clock: the time since the clock's start.
package struct MonotonicInstant: Sendable, Hashable, Comparable {
  package var uptime: Duration

  package init(uptime: Duration) { self.uptime = uptime }

  package static func < (one: MonotonicInstant, other: MonotonicInstant) -> Bool { one.uptime < other.uptime }
  package static func + (moment: MonotonicInstant, duration: Duration) -> MonotonicInstant {
    MonotonicInstant(uptime: moment.uptime + duration)
  }
  package static func - (later: MonotonicInstant, earlier: MonotonicInstant) -> Duration {
    later.uptime - earlier.uptime
  }
}

/// The clocks of the operating system.
package struct SystemClock: TokenClock {
  private static let longestSleep = Duration.seconds(60)

  private let beginning = ContinuousClock.now

  package init() {}

  package var now: MonotonicInstant { MonotonicInstant(uptime: ContinuousClock.now - beginning) }

  package var wallClockMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  package func sleep(until moment: MonotonicInstant) async throws {
    // A canceled sleep stays in the executor's timer queue until it would have ended, and servers choose how long.
    while moment - now > Self.longestSleep {
      try await Task.sleep(until: beginning + now.uptime + Self.longestSleep, clock: .continuous)
    }
    try await Task.sleep(until: beginning + moment.uptime, clock: .continuous)
  }
}
