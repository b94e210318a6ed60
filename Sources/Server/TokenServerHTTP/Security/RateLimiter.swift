// SPDX-License-Identifier: Apache-2.0
import Synchronization
import TokenServerCore

/// Token buckets, one per key, in bounded memory.
final class RateLimiter: Sendable {
  private struct Bucket {
    var tokens: Double
    var atMs: Int64
  }

  private let perSecond: Double
  private let burst: Double
  private let capacity: Int
  private let uptimeMs: @Sendable () -> Int64
  private let buckets = Mutex<[String: Bucket]>([:])

  /// - Parameter capacity: the maximum number of keys; at the limit, full buckets are dropped.
  init(
    perSecond: Double, burst: Double, capacity: Int = 20_000,
    uptimeMs: @escaping @Sendable () -> Int64 = Uptime.nowMs
  ) {
    self.perSecond = perSecond
    self.burst = burst
    self.capacity = capacity
    self.uptimeMs = uptimeMs
  }

  /// Returns a token that `allows` took.
  func giveBack(_ key: String) {
    buckets.withLock { buckets in
      guard let tokens = buckets[key]?.tokens else { return }
      buckets[key]?.tokens = min(burst, tokens + 1)
    }
  }

  /// Takes one token; false if there is none.
  func allows(_ key: String) -> Bool {
    let nowMs = uptimeMs()
    return buckets.withLock { buckets in
      if buckets.count >= capacity, buckets[key] == nil {
        buckets = buckets.filter { refilled($0.value, nowMs: nowMs).tokens < burst }
        // All keys are active: refuse new keys rather than drop a bucket that limits a client.
        guard buckets.count < capacity else { return false }
      }
      var bucket = buckets[key].map { refilled($0, nowMs: nowMs) } ?? Bucket(tokens: burst, atMs: nowMs)
      defer { buckets[key] = bucket }
      guard bucket.tokens >= 1 else { return false }
      bucket.tokens -= 1
      return true
    }
  }

  private func refilled(_ bucket: Bucket, nowMs: Int64) -> Bucket {
    Bucket(tokens: min(burst, bucket.tokens + Double(nowMs - bucket.atMs) / 1000 * perSecond), atMs: nowMs)
  }
}
