// SPDX-License-Identifier: Apache-2.0
import Synchronization
import TokenServerCore

/// How many servers share the limits of rates.
package final class ServerCount: Sendable {
  private let count: Atomic<Int>

  package init(_ count: Int = 1) { self.count = Atomic(max(1, count)) }

  package var current: Int { count.load(ordering: .relaxed) }

  package func set(_ count: Int) { self.count.store(max(1, count), ordering: .relaxed) }
}

/// Token buckets, one per key, in bounded memory. Each of several servers grants its part of the rate.
final class RateLimiter: Sendable {
  private struct Bucket {
    var tokens: Double
    var filledAt: Duration
  }

  private let totalPerSecond: Double
  private let totalBurst: Double
  private let capacity: Int
  private let servers: ServerCount
  private let uptime: @Sendable () -> Duration
  private let buckets = Mutex<[String: Bucket]>([:])

  /// - Parameters:
  ///   - perSecond: of all servers together, as `burst`.
  ///   - capacity: the maximum number of keys; at the limit, full buckets are dropped.
  init(
    perSecond: Double, burst: Double, capacity: Int = 20_000, servers: ServerCount = ServerCount(),
    uptime: @escaping @Sendable () -> Duration = Uptime.now
  ) {
    totalPerSecond = perSecond
    totalBurst = burst
    self.servers = servers
    self.capacity = capacity
    self.uptime = uptime
  }

  private var perSecond: Double { totalPerSecond / Double(servers.current) }
  /// At least one request, with however many servers.
  private var burst: Double { max(1, totalBurst / Double(servers.current)) }

  /// Returns a token that `allows` took.
  func giveBack(_ key: String) {
    buckets.withLock { buckets in
      guard let tokens = buckets[key]?.tokens else { return }
      buckets[key]?.tokens = min(burst, tokens + 1)
    }
  }

  /// Takes one token; false if there is none.
  func allows(_ key: String) -> Bool {
    let now = uptime()
    return buckets.withLock { buckets in
      if buckets.count >= capacity, buckets[key] == nil {
        buckets = buckets.filter { refilled($0.value, at: now).tokens < burst }
        // All keys are active: refuse new keys rather than drop a bucket that limits a client.
        guard buckets.count < capacity else { return false }
      }
      var bucket = buckets[key].map { refilled($0, at: now) } ?? Bucket(tokens: burst, filledAt: now)
      defer { buckets[key] = bucket }
      guard bucket.tokens >= 1 else { return false }
      bucket.tokens -= 1
      return true
    }
  }

  private func refilled(_ bucket: Bucket, at now: Duration) -> Bucket {
    Bucket(tokens: min(burst, bucket.tokens + (now - bucket.filledAt) / Duration.seconds(1) * perSecond), filledAt: now)
  }
}
