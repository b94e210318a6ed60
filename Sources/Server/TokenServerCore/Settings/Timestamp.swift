// SPDX-License-Identifier: Apache-2.0

/// A time of the wall clock, in whole milliseconds. Stored times are from 1970 to the year 9999.
package struct Timestamp: Sendable, Hashable, Comparable {
  /// Since 1970.
  package let milliseconds: Int64

  /// - Parameter milliseconds: since 1970.
  package init(_ milliseconds: Int64) { self.milliseconds = milliseconds }

  package static func < (one: Timestamp, other: Timestamp) -> Bool { one.milliseconds < other.milliseconds }

  package static func + (time: Timestamp, duration: Duration) -> Timestamp {
    Timestamp(time.milliseconds + duration.milliseconds)
  }

  package static func - (time: Timestamp, duration: Duration) -> Timestamp {
    Timestamp(time.milliseconds - duration.milliseconds)
  }

  package static func - (end: Timestamp, start: Timestamp) -> Duration {
    .milliseconds(end.milliseconds - start.milliseconds)
  }
}

extension Duration {
  /// Whole milliseconds, rounded toward zero.
  package var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
