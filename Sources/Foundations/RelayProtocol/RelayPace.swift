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
  mutating func wait() async throws(RelayError) {
    count += 1
    guard count >= limit else { return }
    let rest = period - (ContinuousClock.now - began)
    if rest > .zero { do { try await Task.sleep(for: rest) } catch { throw .canceled } }
    (began, count) = (.now, 0)
  }
}
