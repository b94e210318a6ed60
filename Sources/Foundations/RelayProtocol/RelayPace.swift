// SPDX-License-Identifier: Apache-2.0

/// Slows down a flood of replies that cost the sender nothing: the socket's buffer fills, and the sender waits.
struct RelayPace {
  private let limit: Int
  private let period: Duration
  private var began = ContinuousClock.now
  private var count = 0

  /// - Parameter limit: the number of replies in a period, at least 1; more than any network process has to report.
  init(limit: Int = 500, in period: Duration = .seconds(1)) {
    self.limit = limit
    self.period = period
  }

  /// To be called after each reply.
  mutating func wait() async throws(RelayError) { try await Self.sleep(for: rest()) }

  /// To be called after each reply; `sleep` is then to be called with the result.
  mutating func rest() -> Duration {
    count += 1
    guard count >= limit else { return .zero }
    let rest = max(.zero, period - (ContinuousClock.now - began))
    (began, count) = (.now + rest, 0)
    return rest
  }

  static func sleep(for rest: Duration) async throws(RelayError) {
    guard rest > .zero else { return }
    do { try await Task.sleep(for: rest) } catch { throw .canceled }
  }
}
