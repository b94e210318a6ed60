// SPDX-License-Identifier: Apache-2.0

/// When to connect again to a service that has ended.
struct Retry: Sendable {
  /// A start of a token is shown at once, and a token that does not start costs little.
  static let shortest = Duration.milliseconds(50)
  static let longest = Duration.seconds(1)

  private var pause = shortest
  private var hasEnded = false

  /// The service has answered.
  mutating func answered() { self = Retry() }

  /// The connection has ended, or there was none.
  /// - Returns: whether this is the first time since the last answer, and how long to wait before the next attempt.
  mutating func ended() -> (isFirst: Bool, pause: Duration) {
    defer { (hasEnded, pause) = (true, min(pause * 5 / 4, Self.longest)) }
    return (!hasEnded, pause)
  }
}
