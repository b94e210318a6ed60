/// How often a token server is asked. Portals wait for people, and servers for many tokens: fast only where a person
/// waits too.
public struct PollingPace: Sendable, Equatable {
  /// While something is open, or was a moment ago.
  public var fast = Duration.seconds(3)
  /// Otherwise: the longest time from a login to the first blink.
  public var idle = Duration.seconds(10)
  /// For so long after the last open challenge, and after a start, the next one is expected.
  public var expectation = Duration.seconds(60)
  /// So long a challenge is shown at most; servers do not tell. Raise it where theirs is longer (120 s unless changed).
  public var lifetime = Duration.seconds(120)

  public init() {}

  /// For a token that is refused although its server is well: it may be let in again.
  static let refused = Duration.seconds(300)
  /// So many refusals in a row, and the token is taken for gone.
  static let refusalsToBeGone = 5
  private static let longest = Duration.seconds(60)

  /// - Parameters:
  ///   - quiet: since something was open or the polling began.
  ///   - random: 0..<1; tokens that started together do not stay in step.
  func interval(quiet: Duration, random: Double) -> Duration {
    (quiet < expectation ? fast : idle) * (0.9 + random * 0.2)
  }

  /// - Parameter failures: in a row.
  func backOff(failures: Int, random: Double) -> Duration {
    min(fast * (1 << min(failures, 10)), Self.longest) * (0.5 + random / 2)
  }
}
