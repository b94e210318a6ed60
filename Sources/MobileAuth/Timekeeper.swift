import Glibc

/// The only source of time in the domain. Deadlines are monotonic; the wall clock is for people and logs, because
/// a board without a clock chip believes it is 1970.
public protocol Timekeeper: Sendable {
  /// Monotonic, counting through suspend.
  var now: Moment { get }
  /// Milliseconds since 1970 as the board believes it. Never decides anything.
  var wallClockMilliseconds: Int64 { get }
  /// Returns at `moment`, at once if it has passed. Throws `CancellationError` when the task is cancelled.
  func sleep(until moment: Moment) async throws
}

/// A point on the monotonic clock: the time since that clock's own beginning.
public struct Moment: Sendable, Hashable, Comparable {
  public var sinceBeginning: Duration

  public init(sinceBeginning: Duration) { self.sinceBeginning = sinceBeginning }

  public static func < (one: Moment, other: Moment) -> Bool { one.sinceBeginning < other.sinceBeginning }
  public static func + (moment: Moment, duration: Duration) -> Moment {
    Moment(sinceBeginning: moment.sinceBeginning + duration)
  }
  public static func - (later: Moment, earlier: Moment) -> Duration { later.sinceBeginning - earlier.sinceBeginning }
}

/// The board's own clocks.
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
