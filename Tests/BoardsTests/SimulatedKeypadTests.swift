// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import FrontPanel
import MobileAuth
import Secrets
import Testing

@Suite(.timeLimit(.minutes(5))) struct SimulatedKeypadTests {
  @Test("Keys are known by their names") func keysAreKnownByTheirNames() {
    for name in (0...9).map(String.init) + ["enter", "delete", "clear", "escape"] {
      #expect(SimulatedKeypad.Key(name) != nil, "\(name)")
    }
    for name in ["", "10", "a", "Enter", "٣", "/", ":", "-1"] { #expect(SimulatedKeypad.Key(name) == nil, "\(name)") }
  }

  @Test("What is pressed is what arrives") func whatIsPressedIsWhatArrives() async throws {
    let keypad = SimulatedKeypad(clock: ManualClock())
    let start = MonotonicInstant(uptime: .zero)
    for name in ["4", "clear", "2", "delete", "escape", "enter"] {
      keypad.press(try #require(SimulatedKeypad.Key(name)))
    }
    keypad.unplug()
    keypad.plugIn()
    var events = keypad.events.makeAsyncIterator()
    let digits = [0x34, 0x32].map { KeyPress.digit(TypedDigit($0)) }
    for key in [digits[0], .clear, digits[1], .delete, .escape, .enter] {
      #expect(await events.next() == .key(key, start))
    }
    #expect(await events.next() == .unavailable("unplugged"))
    #expect(await events.next() == .available)
  }

  @Test("An unplugged keypad does not type") func unplugged() async throws {
    let keypad = SimulatedKeypad(clock: ManualClock())
    let key = try #require(SimulatedKeypad.Key("enter"))
    keypad.unplug()
    let whileUnplugged = keypad.perform(.press(key))
    keypad.plugIn()
    let afterwards = keypad.perform(.press(key))
    #expect(!whileUnplugged && afterwards)
    var events = keypad.events.makeAsyncIterator()
    #expect(await events.next() == .unavailable("unplugged"))
    #expect(await events.next() == .available)
    #expect(await events.next() == .key(.enter, MonotonicInstant(uptime: .zero)))
  }
}
