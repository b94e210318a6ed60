// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The clock of the domain. Deadlines are monotonic. The wall clock is for display and logs only, because a board
/// without a clock chip starts in 1970.
public protocol Timekeeper: Sendable {
  /// Monotonic time, including time in suspend.
  var now: Moment { get }
  /// Milliseconds since 1970, by the board's wall clock. Not used for decisions.
  var wallClockMilliseconds: Int64 { get }
  /// Returns at `moment`, or at once if it has passed. Throws `CancellationError` when the task is canceled.
  func sleep(until moment: Moment) async throws
}

/// A point on the monotonic clock: the time since the clock's start.
public struct Moment: Sendable, Hashable, Comparable {
  public var sinceBeginning: Duration

  public init(sinceBeginning: Duration) { self.sinceBeginning = sinceBeginning }

  public static func < (one: Moment, other: Moment) -> Bool { one.sinceBeginning < other.sinceBeginning }
  public static func + (moment: Moment, duration: Duration) -> Moment {
    Moment(sinceBeginning: moment.sinceBeginning + duration)
  }
  public static func - (later: Moment, earlier: Moment) -> Duration { later.sinceBeginning - earlier.sinceBeginning }
}

/// The clocks of the operating system.
public struct SystemTimekeeper: Timekeeper {
  private let beginning = ContinuousClock.now

  public init() {}

  public var now: Moment { Moment(sinceBeginning: ContinuousClock.now - beginning) }

  public var wallClockMilliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  public func sleep(until moment: Moment) async throws {
    try await Task.sleep(until: beginning + moment.sinceBeginning, clock: .continuous)
  }
}
