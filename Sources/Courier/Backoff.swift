/// How long to wait before trying again: exponential with full jitter, so that tokens a restarted server lost together
/// do not come back together.
public struct Backoff: Sendable, Equatable {
  private let first: Duration
  private let longest: Duration
  private var ceiling: Duration

  /// - Parameters:
  ///   - first: the most the first wait can be. Positive.
  ///   - longest: the most any wait can be.
  public init(first: Duration = .seconds(1), longest: Duration = .seconds(60)) {
    precondition(first > .zero && longest >= first, "a back-off from \(first) to \(longest) never waits")
    self.first = first
    self.longest = longest
    ceiling = first
  }

  /// The next wait: anything from nothing to a ceiling that doubles each time, up to `longest`.
  public mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
    let wait = ceiling * Double.random(in: 0...1, using: &random)
    ceiling = min(ceiling * 2, longest)
    return wait
  }

  /// As `next(using:)`, with the system's random numbers.
  public mutating func next() -> Duration {
    var random = SystemRandomNumberGenerator()
    return next(using: &random)
  }

  /// Something worked: start over.
  public mutating func reset() {
    ceiling = first
  }
}
