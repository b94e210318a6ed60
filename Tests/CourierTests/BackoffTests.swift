import Courier
import Testing

@Suite("Back-off")
struct BackoffTests {
  /// Always the same number: 0 for the shortest wait, all ones for the longest.
  struct Constant: RandomNumberGenerator {
    let value: UInt64
    mutating func next() -> UInt64 { value }
  }

  @Test func doublesItsCeilingUpToTheLongest() {
    var random = Constant(value: .max)
    var backoff = Backoff()
    let waits = (0..<9).map { _ in backoff.next(using: &random) }
    #expect(waits.map(rounded) == [1, 2, 4, 8, 16, 32, 60, 60, 60])
  }

  @Test func startsOverAfterAReset() {
    var random = Constant(value: .max)
    var backoff = Backoff(first: .seconds(2), longest: .seconds(5))
    #expect((0..<3).map { _ in rounded(backoff.next(using: &random)) } == [2, 4, 5])
    backoff.reset()
    #expect(rounded(backoff.next(using: &random)) == 2)
    #expect(backoff != Backoff(first: .seconds(2), longest: .seconds(5)))
  }

  @Test func mayNotWaitAtAll() {
    var random = Constant(value: 0)
    var backoff = Backoff()
    for _ in 0..<9 { #expect(backoff.next(using: &random) == .zero) }
  }

  /// A wait that is the same for everybody, or that leaves out a part of the range, is no full jitter.
  @Test func spreadsOverTheWholeRange() {
    var seeded = LinearGenerator(state: 1)
    let quarters = (0..<1000).map { _ in
      var backoff = Backoff(first: .seconds(4), longest: .seconds(4))
      return Int(backoff.next(using: &seeded) / .seconds(1))
    }
    for quarter in 0..<4 { #expect((200...300).contains(quarters.count { $0 == quarter })) }
  }

  private func rounded(_ wait: Duration) -> Int { Int((wait / .seconds(1)).rounded()) }
}

/// Knuth's MMIX constants: the same numbers on every run.
private struct LinearGenerator: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state
  }
}
