// SPDX-License-Identifier: Apache-2.0
/// Debounces the edges of one contact. Pure: edges with their times go in, settled edges come out; it uses no clock and
/// no hardware.
///
/// A level is settled once it has lasted longer than the window. A press is dated by the last edge of its bouncing, a
/// release by the first edge of its bouncing. A measured hold is therefore never longer than the time for which the
/// contact was firmly closed.
package struct Debouncer: Sendable {
  /// A settled edge. The time is on the clock of the input edges.
  package struct Edge: Sendable, Equatable {
    package let isActive: Bool
    package let at: Duration

    package init(isActive: Bool, at: Duration) {
      self.isActive = isActive
      self.at = at
    }
  }

  /// The permitted windows. Good switches settle within 1 ms, worn ones within 10 ms; a user cannot press twice within
  /// 50 ms.
  package static let windows = Duration.milliseconds(1)...Duration.milliseconds(50)
  package static let usualWindow = Duration.milliseconds(5)

  private let window: Duration
  private var settled: Bool
  private var level: Bool
  /// The first and last edge since the contact was last at rest.
  private var bouncing: (first: Duration, last: Duration)?

  /// - Parameters:
  ///   - window: clamped to `windows`.
  ///   - isActive: the initial level.
  package init(window: Duration = usualWindow, isActive: Bool) {
    self.window = min(max(window, Self.windows.lowerBound), Self.windows.upperBound)
    settled = isActive
    level = isActive
  }

  /// The time at which `time(_:)` must be called if no edge comes before; nil if no edge is unsettled.
  package var nextDeadline: Duration? { bouncing.map { $0.last + window + .nanoseconds(1) } }

  /// The time of the first edge that has not settled. The edge that settles is not earlier.
  package var unsettledSince: Duration? { bouncing?.first }

  /// Processes an edge to `isActive`. The level may have been the same before: the edge between was then too short to
  /// be seen.
  /// - Returns: the edge before, if it had settled by then.
  package mutating func edge(isActive: Bool, at moment: Duration) -> Edge? {
    let edge = time(moment)
    // Two sources may be out of order by microseconds: the kernel's edges and the level that this process reads.
    bouncing = (bouncing?.first ?? moment, max(bouncing?.last ?? moment, moment))
    level = isActive
    return edge
  }

  /// Processes a level that was read from the line. It corrects the state after lost edges.
  package mutating func level(isActive: Bool, at moment: Duration) -> Edge? {
    isActive == level ? time(moment) : edge(isActive: isActive, at: moment)
  }

  /// Returns the edge that has settled by `now`, if there is one.
  package mutating func time(_ now: Duration) -> Edge? {
    guard let (first, last) = bouncing, now - last > window else { return nil }
    bouncing = nil
    guard level != settled else { return nil }
    settled = level
    return Edge(isActive: settled, at: settled ? last : first)
  }
}
