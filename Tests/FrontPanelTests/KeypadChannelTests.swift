// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Secrets
import Testing

@Suite(.timeLimit(.minutes(5))) struct KeypadChannelTests {
  @Test("A key that is dropped takes its digit with it") func keyThatIsDroppedTakesItsDigitWithIt() async {
    let keypad = KeypadChannel(clock: ManualClock())
    let digits = WatchedDigits()
    for _ in 0..<200 {
      keypad.press(.digit(digits.make(0x31)))
      keypad.press(.enter)
    }
    #expect(digits.count == KeypadChannel.capacity / 2)
    var events = keypad.events.makeAsyncIterator()
    for waiting in (0..<KeypadChannel.capacity / 2).reversed() {
      _ = await events.next()
      #expect(digits.count == waiting)
      #expect(await events.next() == .key(.enter, MonotonicInstant(uptime: .zero)))
    }
  }

  @Test("Keys carry their moment and their digit") func keysCarryTheirMomentAndTheirDigit() async {
    let clock = ManualClock()
    clock.advance(by: .seconds(7))
    let keypad = KeypadChannel(clock: clock)
    keypad.press(.digit(TypedDigit(0x37)))
    keypad.keypadIsUnavailable("gone")
    var events = keypad.events.makeAsyncIterator()
    #expect(await events.next() == .key(.digit(TypedDigit(0x37)), MonotonicInstant(uptime: .seconds(7))))
    #expect(await events.next() == .unavailable("gone"))
  }

  @Test("Changes of the availability that a full channel did not take come before the next key")
  func changesAreNotLost() async {
    let keypad = KeypadChannel(clock: ManualClock())
    for _ in 0..<(KeypadChannel.capacity + 8) { keypad.press(.enter) }
    keypad.keypadIsUnavailable("first")
    keypad.keypadIsAvailable()
    keypad.keypadIsUnavailable("second")
    keypad.keypadIsAvailable()
    keypad.press(.clear)
    var events = keypad.events.makeAsyncIterator()
    for _ in 0..<KeypadChannel.capacity {
      #expect(await events.next() == .key(.enter, MonotonicInstant(uptime: .zero)))
    }
    keypad.press(.escape)
    #expect(await events.next() == .unavailable("second"))
    #expect(await events.next() == .available)
    #expect(await events.next() == .key(.escape, MonotonicInstant(uptime: .zero)))
  }
}
