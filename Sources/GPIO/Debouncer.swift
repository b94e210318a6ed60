/// Takes the bouncing out of one contact's edges. Pure: edges with their times go in, settled edges come out; it knows
/// no clock and no hardware.
///
/// A level counts once it has lasted longer than the window. A press is then dated by the last edge of its bouncing and a
/// release by the first of its own, so that a hold is never taken for longer than the contact was closed for good.
public struct Debouncer: Sendable {
  /// A settled edge. The time is on the clock of the edges that went in.
  public struct Edge: Sendable, Equatable {
    public let isActive: Bool
    public let at: Duration

    public init(isActive: Bool, at: Duration) {
      self.isActive = isActive
      self.at = at
    }
  }

  /// Good switches settle within 1 ms, worn ones within 10 ms; a person cannot press twice within 50 ms.
  public static let windows = Duration.milliseconds(1)...Duration.milliseconds(50)
  public static let usualWindow = Duration.milliseconds(5)

  private let window: Duration
  private var settled: Bool
  private var level: Bool
  /// Edges since the contact was last at rest.
  private var bouncing: (first: Duration, last: Duration)?

  /// - Parameters:
  ///   - window: clamped to `windows`.
  ///   - isActive: the level at the beginning.
  public init(window: Duration = usualWindow, isActive: Bool) {
    self.window = min(max(window, Self.windows.lowerBound), Self.windows.upperBound)
    settled = isActive
    level = isActive
  }

  /// When `time(_:)` has something to say even if no edge comes.
  public var nextMoment: Duration? { bouncing.map { $0.last + window + .nanoseconds(1) } }

  /// An edge to `isActive`, also where the level was that already: the one in between was then too short to be seen.
  /// - Returns: the edge before, if it had settled by then.
  public mutating func edge(isActive: Bool, at moment: Duration) -> Edge? {
    let edge = time(moment)
    // Two sources may be out of order by microseconds: the kernel's edges and the level read by ourselves.
    bouncing = (bouncing?.first ?? moment, max(bouncing?.last ?? moment, moment))
    level = isActive
    return edge
  }

  /// The level as it was read, which corrects what lost edges left behind.
  public mutating func level(isActive: Bool, at moment: Duration) -> Edge? {
    isActive == level ? time(moment) : edge(isActive: isActive, at: moment)
  }

  /// Tells what the passing of time alone has settled.
  public mutating func time(_ now: Duration) -> Edge? {
    guard let (first, last) = bouncing, now - last > window else { return nil }
    bouncing = nil
    guard level != settled else { return nil }
    settled = level
    return Edge(isActive: settled, at: settled ? last : first)
  }
}
