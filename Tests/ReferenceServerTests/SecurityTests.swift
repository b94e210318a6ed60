import Cryptography
import Secrets
import Synchronization
import Testing

@testable import ReferenceServer

/// A clock for limits and nonces that moves when told.
final class ManualUptime: Sendable {
  private let value = Mutex(Int64(0))
  var nowMs: Int64 { value.withLock { $0 } }
  func advance(_ milliseconds: Int64) { value.withLock { $0 += milliseconds } }
}

@Suite struct DPoPNonceTests {
  @Test func freshForAtLeastOneAndAtMostFiveMinutes() {
    let uptime = ManualUptime()
    let nonces = DPoPNonces { uptime.nowMs }
    uptime.advance(29_999)
    let nonce = nonces.current()
    #expect(nonces.isFresh(nonce))
    uptime.advance(60_000)
    #expect(nonces.isFresh(nonce))
    uptime.advance(240_000)
    #expect(!nonces.isFresh(nonce))
  }

  @Test func changes() {
    let uptime = ManualUptime()
    let nonces = DPoPNonces { uptime.nowMs }
    let first = nonces.current()
    uptime.advance(30_000)
    #expect(nonces.current() != first)
  }

  @Test func nobodyElsesAreFresh() {
    let nonces = DPoPNonces()
    var altered = bytes(base64URL: nonces.current())!
    altered[39] ^= 1
    for nonce in ["", "x", DPoPNonces().current(), altered.base64URL] { #expect(!nonces.isFresh(nonce)) }
  }

  @Test func forgotten() {
    let nonces = DPoPNonces()
    let nonce = nonces.current()
    nonces.forgetAll()
    #expect(!nonces.isFresh(nonce))
    #expect(nonces.isFresh(nonces.current()))
  }
}

@Suite struct ReplayCacheTests {
  @Test func seenForItsLifetimeAndByItsOwner() {
    let uptime = ManualUptime()
    let cache = ReplayCache(lifetimeMs: 1000, capacity: 10) { uptime.nowMs }
    #expect(cache.remember("a", of: "x") == .new)
    #expect(cache.remember("a", of: "y") == .new)
    uptime.advance(999)
    #expect(cache.remember("a", of: "x") == .seen)
    uptime.advance(1)
    #expect(cache.remember("a", of: "x") == .seen)
    uptime.advance(5000)
    #expect(cache.remember("a", of: "x") == .new)
  }

  @Test func fullIsSaid() {
    let cache = ReplayCache(lifetimeMs: 1000, capacity: 2) { 0 }
    #expect(cache.remember("a", of: "x") == .new)
    #expect(cache.remember("b", of: "x") == .new)
    #expect(cache.remember("c", of: "x") == .full)
    #expect(cache.remember("a", of: "x") == .seen)
    cache.forgetAll()
    #expect(cache.remember("a", of: "x") == .new)
  }
}

@Suite struct RateLimiterTests {
  @Test func burstThenRate() {
    let uptime = ManualUptime()
    let limiter = RateLimiter(perSecond: 2, burst: 3) { uptime.nowMs }
    #expect((1...4).map { _ in limiter.allows("a") } == [true, true, true, false])
    #expect(limiter.allows("b"))
    uptime.advance(500)
    #expect(limiter.allows("a"))
    #expect(!limiter.hasRoom("a"))
  }

  @Test func lookingTakesNothing() {
    let limiter = RateLimiter(perSecond: 0, burst: 1) { 0 }
    #expect(limiter.hasRoom("a") && limiter.hasRoom("a"))
    #expect(limiter.allows("a"))
    #expect(!limiter.hasRoom("a"))
  }

  @Test func boundedMemory() {
    let uptime = ManualUptime()
    let limiter = RateLimiter(perSecond: 1, burst: 1, capacity: 2) { uptime.nowMs }
    #expect(limiter.allows("a") && limiter.allows("b"))
    #expect(!limiter.allows("c"))
    uptime.advance(1000)
    #expect(limiter.allows("c"))
  }
}

@Suite struct PepperedTests {
  @Test func purposesAndPeppersDiffer() {
    let one = Peppered(SecretBytes(copying: [UInt8](repeating: 1, count: 32)))
    let other = Peppered(SecretBytes(copying: [UInt8](repeating: 2, count: 32)))
    let hashes = [one, other].flatMap { pepper in Peppered.Purpose.allCases.map { pepper.hash("secret", for: $0) } }
    #expect(Set(hashes).count == 2 * Peppered.Purpose.allCases.count)
    #expect(one.hash("secret", for: .portalSecret) == one.hash("secret", for: .portalSecret))
  }
}

@Suite struct CallbackScheduleTests {
  @Test(arguments: [(1, 1_000), (2, 5_000), (3, 30_000), (4, 120_000), (5, 600_000), (6, 1_800_000), (60, 1_800_000)])
  func delays(attempts: Int, delayMs: Int64) {
    #expect(CallbackSchedule.delayMs(afterFailures: attempts, jitter: 0) == delayMs)
    #expect(CallbackSchedule.delayMs(afterFailures: attempts, jitter: -1) == delayMs * 8 / 10)
    #expect(CallbackSchedule.delayMs(afterFailures: attempts, jitter: 1) == delayMs * 12 / 10)
  }

  @Test(arguments: [
    ("https://a/b", true), ("http://127.0.0.1:1/x?y=z", true), ("HTTP://a", true), ("ftp://a", false), ("a", false),
    ("https://", false), ("https:///x", false), ("https://a/#f", false), ("", false),
  ])
  func urls(text: String, isAcceptable: Bool) { #expect(CallbackURL.isAcceptable(text) == isAcceptable) }
}
