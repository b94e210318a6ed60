// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import BenchPage

@Suite(.timeLimit(.minutes(5))) struct PressTimingTests {
  private let began = ContinuousClock.now

  private func after(_ milliseconds: Int) -> ContinuousClock.Instant { began + .milliseconds(milliseconds) }

  @Test("A press lasts while the page says so") func beats() {
    var press = PressTiming(now: began)
    for moment in stride(from: 100, through: 5_000, by: 100) {
      press.expectBeat(after(moment), isTaken: true)
      #expect(press.timeLeft(now: after(moment)) == .milliseconds(500))
    }
  }

  @Test("A page that falls silent ends its press before it approves") func silence() {
    var press = PressTiming(now: began)
    #expect(press.timeLeft(now: after(499)) == .milliseconds(1))
    #expect(press.timeLeft(now: after(500)) == nil)
    // Also if the page comes back.
    press.expectBeat(after(500), isTaken: false)
    #expect(press.timeLeft(now: after(501)) == nil)
    #expect(PressTiming.silence < .milliseconds(800))
  }

  @Test("A release that arrives late ends a press that its user has not held that long") func lateRelease() {
    var press = PressTiming(now: began)
    press.expectBeat(after(400), isTaken: true)
    #expect(press.isGenuine(release: .milliseconds(420), now: after(500)))
    #expect(!press.isGenuine(release: .milliseconds(420), now: after(621)))
    #expect(!press.isGenuine(release: .milliseconds(-1), now: after(300)))
  }

  @Test("No press lasts longer than half a minute") func longest() {
    var press = PressTiming(now: began)
    for moment in stride(from: 100, through: 29_900, by: 100) { press.expectBeat(after(moment), isTaken: true) }
    #expect(press.timeLeft(now: after(29_900)) == .milliseconds(100))
    press.expectBeat(after(30_000), isTaken: false)
    #expect(press.timeLeft(now: after(30_000)) == nil)
  }

  @Test("A beat that arrives out of order takes nothing back") func order() {
    var press = PressTiming(now: began)
    press.expectBeat(after(300), isTaken: true)
    press.expectBeat(after(100), isTaken: true)
    #expect(press.timeLeft(now: after(300)) == .milliseconds(500))
  }
}

extension PressTiming {
  fileprivate mutating func expectBeat(_ moment: Instant, isTaken: Bool) {
    let wasTaken = beat(moment)
    #expect(wasTaken == isTaken)
  }
}
