// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A time on the monotonic clock, in nanoseconds.
struct Instant: Comparable {
  var nanoseconds: Int64

  static var now: Instant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  static func < (one: Instant, other: Instant) -> Bool { one.nanoseconds < other.nanoseconds }

  static func + (instant: Instant, seconds: Double) -> Instant {
    Instant(nanoseconds: instant.nanoseconds + Int64(seconds * 1e9))
  }

  /// The difference in seconds.
  static func - (one: Instant, other: Instant) -> Double { Double(one.nanoseconds - other.nanoseconds) / 1e9 }
}

func pause(seconds: Double) { usleep(UInt32(seconds * 1e6)) }
