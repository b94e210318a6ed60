// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Threads

@Suite("Timers", .timeLimit(.minutes(1))) struct TimerQueueTests {
  @Test("Items are taken when they are due, equal times in the order of insertion") func order() {
    var queue = TimerQueue<String>()
    #expect(queue.next == nil)
    let isNext = [("b", 20), ("a", 10), ("a2", 10), ("c", 30)].map { queue.insert($0.0, due: $0.1) }
    #expect(isNext == [true, true, false, false])
    #expect(queue.next == 10)
    let taken = [9, 20, 20, 20, 29, 30, .max].map { queue.takeDue(at: $0) }
    #expect(taken == [nil, "a", "a2", "b", nil, "c", nil])
    #expect(queue.next == nil)
  }

  @Test("Any order of insertion gives the order of the times", arguments: 0..<20) func anyOrder(seed: UInt64) {
    var random = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    func number() -> Int64 {
      random ^= random << 13
      random ^= random >> 7
      random ^= random << 17
      return Int64(random % 16)
    }
    var queue = TimerQueue<Int>()
    var expected: [(due: Int64, item: Int)] = []
    for item in 0..<100 {
      let due = number()
      let isNext = expected.allSatisfy { due < $0.due }
      let inserted = queue.insert(item, due: due)
      #expect(inserted == isNext, "seed \(seed)")
      expected.append((due, item))
    }
    expected.sort { ($0.due, $0.item) < ($1.due, $1.item) }
    let taken = (0..<100).map { _ in queue.takeDue(at: 15) }
    #expect(taken == expected.map(\.item), "seed \(seed)")
  }
}
