/// When to call a portal again that could not be told.
enum CallbackSchedule {
  private static let delaysMs: [Int64] = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000]

  /// - Parameters:
  ///   - attempts: deliveries that have failed, at least 1.
  ///   - jitter: −1…1; the delay varies by a fifth, so that a portal that comes back is not called by all at once.
  static func delayMs(afterFailures attempts: Int, jitter: Double) -> Int64 {
    let delay = delaysMs[min(max(attempts, 1), delaysMs.count) - 1]
    return delay + Int64(Double(delay) * 0.2 * jitter)
  }
}
