// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RateLimiterTests {
  @Test("Several servers grant the limit in sum, and each of more servers than its burst one request")
  func severalServers() {
    let uptime = ManualUptime()
    let count = ServerCount(4)
    let limiters = (0..<4).map { _ in RateLimiter(perSecond: 8, burst: 16, servers: count) { uptime.now } }
    func granted() -> Int { limiters.reduce(0) { sum, limiter in sum + (0..<20).count { _ in limiter.allows("x") } } }
    #expect(granted() == 16)
    uptime.advance(by: .seconds(1))
    #expect(granted() == 8)
    count.set(0)
    uptime.advance(by: .seconds(100))
    #expect(count.current == 1 && granted() == 64)
    count.set(32)
    uptime.advance(by: .seconds(100))
    #expect(granted() == 4)
  }

  @Test("Burst then rate") func burstThenRate() {
    let uptime = ManualUptime()
    let limiter = RateLimiter(perSecond: 2, burst: 3) { uptime.now }
    #expect((1...4).map { _ in limiter.allows("a") } == [true, true, true, false])
    #expect(limiter.allows("b"))
    uptime.advance(by: .milliseconds(500))
    #expect(limiter.allows("a"))
    #expect(!limiter.allows("a"))
  }

  @Test("A returned token can be taken again and does not exceed the capacity")
  func givingBack() {
    let limiter = RateLimiter(perSecond: 0, burst: 1) { .zero }
    limiter.giveBack("a")
    #expect(limiter.allows("a"))
    #expect(!limiter.allows("a"))
    limiter.giveBack("a")
    limiter.giveBack("a")
    #expect(limiter.allows("a"))
    #expect(!limiter.allows("a"))
  }

  @Test("Bounded memory") func boundedMemory() {
    let uptime = ManualUptime()
    let limiter = RateLimiter(perSecond: 1, burst: 1, capacity: 2) { uptime.now }
    #expect(limiter.allows("a") && limiter.allows("b"))
    #expect(!limiter.allows("c"))
    uptime.advance(by: .milliseconds(1000))
    #expect(limiter.allows("c"))
  }
}
