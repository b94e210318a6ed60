// SPDX-License-Identifier: Apache-2.0
/// Keeps a connection alive: reconnects with exponential backoff and jitter.
struct Reconnection: Sendable {
  static let firstPause = Duration.seconds(1)
  static let longestPause = Duration.seconds(60)
  /// A connection that lasted this long was healthy, or an attempt was a long one: the backoff starts again.
  static let healthyAfter = Duration.seconds(60)

  /// Uniform in 0..<1.
  let random: @Sendable () -> Double
  let sleep: @Sendable (Duration) async throws -> Void

  /// - Parameters:
  ///   - connect: runs one connection until it ends.
  ///   - report: called with the reason and the length of the pause.
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
