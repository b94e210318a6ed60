// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Boards
import FrontPanel
import MobileAuth
import Testing

@Suite(.timeLimit(.minutes(5))) struct SimulatedButtonTests {
  private let clock = ManualClock()
  private let button: SimulatedButton

  init() { button = SimulatedButton(clock: clock) }

  private var start: MonotonicInstant { MonotonicInstant(uptime: .zero) }
  private var canceled: ButtonEvent { .void("the press was canceled") }

  private struct ClientError: Error {}

  @Test("A press lasts until it is released") func released() async throws {
    async let ending = button.press(.approve)
    var events = button.events.makeAsyncIterator()
    #expect(await events.next() == .down(.approve, start))
    clock.advance(by: .milliseconds(900))
    #expect(button.release(heldFor: .milliseconds(850)) == .released)
    #expect(try await ending == .released)
    #expect(await events.next() == .up(start + .milliseconds(900)))
    #expect(button.release(heldFor: .milliseconds(850)) == nil)
  }

  /// Fails if a slow connection makes a short press an approval, or "not me" an approval.
  @Test(
    "A press that its user held for a different time is no gesture",
    arguments: [
      (held: 500, measured: 701), (901, 700), (799, 800), (790, 990), (5_999, 6_000), (6_100, 5_900), (-201, 0),
    ])
  func anotherTime(held: Int, measured: Int) async throws {
    async let ending = button.press(.approve)
    var events = button.events.makeAsyncIterator()
    #expect(await events.next() == .down(.approve, start))
    clock.advance(by: .milliseconds(measured))
    let released = button.release(heldFor: .milliseconds(held), limits: [.milliseconds(800), .seconds(6)])
    #expect(released == .canceled)
    #expect(try await ending == .canceled)
    #expect(await events.next() == canceled)
  }

  @Test("A press whose client disconnects is no gesture") func disconnected() async throws {
    let press = Task { try await button.press(.approve) }
    var events = button.events.makeAsyncIterator()
    #expect(await events.next() == .down(.approve, start))
    clock.advance(by: .seconds(2))
    press.cancel()
    #expect(try await press.finished() == .canceled)
    #expect(await events.next() == canceled)
    #expect(await events.next() == .up(start + .seconds(2)))
    #expect(button.release(heldFor: .seconds(2)) == nil)
  }

  /// Fails if a "not me" whose client ends early is an approval.
  @Test("A hold whose client disconnects is no gesture") func interruptedHold() async throws {
    let button = button
    let hold = Task { try await button.hold(for: .seconds(7)) }
    var events = button.events.makeAsyncIterator()
    #expect(await events.next() == .down(.approve, start))
    clock.advance(by: .milliseconds(2500))
    hold.cancel()
    try await hold.finished()
    #expect(await events.next() == canceled)
    #expect(await events.next() == .up(start + .milliseconds(2500)))
  }

  @Test("A double press whose client disconnects is none") func interruptedDoublePress() async throws {
    let button = button
    let presses = Task { try await button.doublePress() }
    await clock.untilAsleep()
    clock.advance(by: .milliseconds(200))
    presses.cancel()
    try await presses.finished()
    button.unplug()
    var events = button.events.makeAsyncIterator()
    #expect(await events.next() == .unavailable("the chip is unplugged"))
  }

  @Test("A press of which the client cannot be notified is no gesture") func notNotified() async throws {
    var events = button.events.makeAsyncIterator()
    await #expect(throws: ClientError.self) { try await button.press(.deny) { throw ClientError() } }
    #expect(await events.next() == .down(.deny, start))
    #expect(await events.next() == canceled)
  }

  @Test("Two buttons that are down are no press") func twoButtons() async throws {
    async let first = button.press(.approve)
    var events = button.events.makeAsyncIterator()
    #expect(await events.next() == .down(.approve, start))
    await #expect(throws: SimulatedButton.PressError.isDown) { try await button.press(.deny) }
    #expect(try await first == .canceled)
    #expect(await events.next() == canceled)
    #expect(await events.next() == .up(start))
  }

  @Test("Unplugging the chip ends a press, and no press begins until it is plugged in") func unplugged() async throws {
    async let first = button.press(.approve)
    var events = button.events.makeAsyncIterator()
    #expect(await events.next() == .down(.approve, start))
    button.unplug()
    #expect(try await first == .canceled)
    await #expect(throws: SimulatedButton.PressError.isUnplugged) { try await button.press(.approve) }
    button.plugIn()
    for event in [canceled, .up(start), .unavailable("the chip is unplugged"), .up(start)] {
      #expect(await events.next() == event)
    }
    async let second = button.press(.deny)
    #expect(await events.next() == .down(.deny, start))
    #expect(button.release(heldFor: .zero) == .released)
    #expect(try await second == .released)
  }

  @Test("An unplugged chip's button is not held, and its release does not come") func unpluggedHold() async throws {
    button.unplug()
    await #expect(throws: SimulatedButton.PressError.isUnplugged) { try await button.hold(for: .seconds(1)) }
    await #expect(throws: SimulatedButton.PressError.isUnplugged) { try await button.doublePress() }
    button.plugIn()
    var events = button.events.makeAsyncIterator()
    for event in [.unavailable("the chip is unplugged"), .up(start)] as [ButtonEvent] {
      #expect(await events.next() == event)
    }
    let hold = Task { try await button.hold(for: .seconds(1)) }
    #expect(await events.next() == .down(.approve, start))
    button.unplug()
    button.plugIn()
    clock.advance(by: .seconds(1))
    await #expect(throws: SimulatedButton.PressError.isUnplugged) { try await hold.finished() }
    button.unplug()
    let rest: [ButtonEvent] = [
      .unavailable("the chip is unplugged"), .up(start), .unavailable("the chip is unplugged"),
    ]
    for event in rest { #expect(await events.next() == event) }
  }

  @Test("An unplugged LED is dark and the buzzer silent; both continue when the chip is plugged in")
  func unpluggedLED() async {
    let indicator = SimulatedIndicator(clock: clock)
    var outputs = indicator.changes().makeAsyncIterator()
    _ = await outputs.next()
    indicator.light(.blue, in: LEDContext())
    indicator.sound(true)
    indicator.set(isConnected: false)
    indicator.light(.green, in: LEDContext())
    indicator.set(isConnected: true)
    var seen: [SimulatedIndicator.Output] = []
    for _ in 0..<5 { if let output = await outputs.next() { seen.append(output) } }
    #expect(seen.map(\.color) == [.blue, .blue, nil, nil, .green])
    #expect(seen.map(\.isSounding) == [false, true, false, false, true])
  }
}
