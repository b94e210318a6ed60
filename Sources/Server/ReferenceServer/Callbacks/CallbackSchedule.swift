// SPDX-License-Identifier: Apache-2.0
/// The backoff for callbacks that failed.
enum CallbackSchedule {
  private static let delaysMs: [Int64] = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]

  /// - Parameters:
  ///   - attempts: the number of failed deliveries, at least 1.
  ///   - jitter: −1…1; varies the delay by up to 20 %, so that a portal that recovers does not receive all callbacks at
  ///     once.
  static func delayMs(afterFailures attempts: Int, jitter: Double) -> Int64 {
    let delay = delaysMs[min(max(attempts, 1), delaysMs.count) - 1]
    return delay + Int64(Double(delay) * 0.2 * jitter)
  }
}
