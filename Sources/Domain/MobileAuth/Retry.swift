// SPDX-License-Identifier: Apache-2.0
/// Backoff between attempts: random delays below a cap that doubles. The randomness is injected.
struct Retry: Sendable {
  private let first: Duration
  private let longest: Duration
  private let random: @Sendable () -> Double
  private var cap: Duration

  init(from first: Duration, to longest: Duration, in environment: TokenEnvironment) {
    self.first = first
    self.longest = longest
    random = environment.random
    cap = first
  }

  /// Returns a delay between half the cap and the cap, so that a retry is never immediate and two tokens do not stay
  /// synchronized.
  mutating func next() -> Duration {
    defer { cap = min(cap * 2, longest) }
    return cap * (0.5 + random() / 2)
  }

  mutating func reset() { cap = first }
}
