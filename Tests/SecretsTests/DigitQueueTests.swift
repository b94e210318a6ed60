// SPDX-License-Identifier: Apache-2.0
import Secrets
import Testing

@Suite(.timeLimit(.minutes(5))) struct `A queue of digits` {
  private func drained(_ queue: DigitQueue) -> String {
    var typed = TypedDigits()
    while queue.count > 0 { queue.move(to: &typed) }
    return typed.pin(count: typed.count)?.digits.withExposedSecret { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  private func put(_ digits: String, into queue: DigitQueue) {
    for digit in digits.utf8 { queue.put(digit) { true } }
  }

  @Test func `Returns them in the order of arrival`() {
    let queue = DigitQueue()
    put("31415", into: queue)
    #expect(drained(queue) == "31415")
  }

  @Test func `Wraps around its end any number of times`() {
    let queue = DigitQueue()
    for round in 0..<20 {
      let digits = String((0..<23).map { Character("\(($0 * 7 + round) % 10)") })
      put(digits, into: queue)
      #expect(drained(queue) == digits)
    }
  }

  @Test func `Removes a digit again whose event could not be sent`() {
    let queue = DigitQueue()
    put("1", into: queue)
    #expect(!queue.put(0x32) { false })
    put("3", into: queue)
    #expect(drained(queue) == "13")
  }

  @Test func `Discards only the oldest digit`() {
    let queue = DigitQueue()
    put("123", into: queue)
    queue.discard()
    #expect(drained(queue) == "23")
  }

  @Test func `Sends no event when it is full`() {
    let queue = DigitQueue()
    var announced = 0
    for _ in 0..<(DigitQueue.capacity + 10) {
      queue.put(0x30) {
        announced += 1
        return true
      }
    }
    #expect(announced == DigitQueue.capacity && queue.count == DigitQueue.capacity)
    queue.discard()
    #expect(queue.put(0x31) { true })
  }
}
