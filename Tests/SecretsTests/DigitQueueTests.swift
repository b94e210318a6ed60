// SPDX-License-Identifier: Apache-2.0
import Secrets
import Testing

@Suite("A queue of digits", .timeLimit(.minutes(5))) struct DigitQueueTests {
  private func drained(_ queue: DigitQueue) -> String {
    var typed = TypedDigits()
    while queue.count > 0 { queue.move(to: &typed) }
    return typed.pin(count: typed.count)?.digits.withExposedSecret { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  private func put(_ digits: String, into queue: DigitQueue) {
    for digit in digits.utf8 { queue.put(digit) { true } }
  }

  @Test("Returns them in the order of arrival") func returnsThemInTheOrderOfArrival() {
    let queue = DigitQueue()
    put("31415", into: queue)
    #expect(drained(queue) == "31415")
  }

  @Test("Wraps around its end any number of times") func wrapsAroundItsEndAnyNumberOfTimes() {
    let queue = DigitQueue()
    for round in 0..<20 {
      let digits = String((0..<23).map { Character("\(($0 * 7 + round) % 10)") })
      put(digits, into: queue)
      #expect(drained(queue) == digits)
    }
  }

  @Test("Removes a digit again whose event could not be sent") func removesADigitAgainWhoseEventCouldNotBeSent() {
    let queue = DigitQueue()
    put("1", into: queue)
    #expect(!queue.put(0x32) { false })
    put("3", into: queue)
    #expect(drained(queue) == "13")
  }

  @Test("Discards only the oldest digit") func discardsOnlyTheOldestDigit() {
    let queue = DigitQueue()
    put("123", into: queue)
    queue.discard()
    #expect(drained(queue) == "23")
  }

  @Test("Sends no event when it is full") func sendsNoEventWhenItIsFull() {
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
