// SPDX-License-Identifier: Apache-2.0
import TokenServerCore

/// The backoff for callbacks that failed.
enum CallbackSchedule {
  private static let delays: [Duration] = [1, 5, 30, 120, 600, 1800].map { .seconds($0) }

  /// - Parameters:
  ///   - attempts: the number of failed deliveries, at least 1.
  ///   - jitter: −1…1; varies the delay by up to 20 %, so that a portal that recovers does not receive all callbacks at
  ///     once.
  static func delay(afterFailures attempts: Int, jitter: Double) -> Duration {
    let delay = delays[min(max(attempts, 1), delays.count) - 1]
    return delay + .milliseconds(Int64(Double(delay.milliseconds) * 0.2 * jitter))
  }
}
