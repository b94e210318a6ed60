/// Keeps a connection: one after the other, with pauses that grow, and of which no two clients have the same.
struct Reconnection: Sendable {
  static let firstPause = Duration.seconds(1)
  static let longestPause = Duration.seconds(60)
  /// A connection that lived this long was healthy: the next pause starts small.
  static let healthyAfter = Duration.seconds(60)

  /// Uniform in 0..<1.
  let random: @Sendable () -> Double
  let sleep: @Sendable (Duration) async throws -> Void

  /// - Parameters:
  ///   - connect: one connection from its beginning to its end.
  ///   - report: told why it ended, and how long the pause is.
  /// - Throws: `CancellationError`, or what `sleep` throws.
  func run(
    _ connect: () async -> BrokerError, report: (BrokerError, Duration) -> Void
  ) async throws -> Never {
    var cap = Self.firstPause
    while true {
      let began = ContinuousClock.now
      let failure = await connect()
      try Task.checkCancellation()
      if .now - began >= Self.healthyAfter { cap = Self.firstPause }
      let pause = cap * (0.5 + random() / 2)
      report(failure, pause)
      try await sleep(pause)
      cap = min(cap * 2, Self.longestPause)
    }
  }
}
