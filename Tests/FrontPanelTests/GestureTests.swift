// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Testing

/// Edges as (milliseconds, is down), from the moment the prompt was armed.
@Suite(.timeLimit(.minutes(5))) struct GestureTests {
  typealias Event = GestureRecognizer.Event

  private func events(
    _ edges: [(Int64, Bool)], prompt: Prompt = .confirmation, downAtStart: Bool = false, until end: Int64 = 60_000
  ) -> [Event] {
    func moment(_ milliseconds: Int64) -> MonotonicInstant {
      MonotonicInstant(uptime: .milliseconds(1_000_000 + milliseconds))
    }
    var recognizer = GestureRecognizer(
      for: prompt, timing: GestureTiming(), armedAt: moment(0), isDown: downAtStart)
    var events: [Event] = []
    func pass(until limit: Int64) {
      // Call the recognizer's timeouts when due, as the panel does.
      while let next = recognizer.nextDeadline, next <= moment(limit) {
        events += recognizer.time(next)
      }
    }
    for (milliseconds, isDown) in edges {
      pass(until: milliseconds)
      events +=
        isDown ? recognizer.press(.approve, at: moment(milliseconds)) : recognizer.release(at: moment(milliseconds))
    }
    pass(until: end)
    return events
  }

  private func gestures(_ edges: [(Int64, Bool)], downAtStart: Bool = false) -> [Gesture.Kind] {
    events(edges, downAtStart: downAtStart).compactMap {
      if case .gesture(let gesture) = $0 { gesture.kind } else { nil }
    }
  }

  @Test(
    "A hold is judged when it is released",
    arguments: [
      (500, 1300, Gesture.Kind.hold), (600, 6599, .hold), (600, 6600, .veryLongHold), (600, 10_599, .veryLongHold),
    ])
  func aHoldIsJudgedWhenItIsReleased(down: Int64, up: Int64, kind: Gesture.Kind) {
    #expect(gestures([(down, true), (up, false)]) == [kind])
  }

  @Test("Where only denying means something a hold is nothing") func whereOnlyDenyingMeansSomethingAHoldIsNothing() {
    #expect(events([(600, true), (2600, false)], prompt: .denial) == [.touched, .released, .ineffective])
    for edges in [
      [(600, true), (700, false), (900, true), (1000, false)], [(600, true), (7000, false)],
    ] as [[(Int64, Bool)]] {
      guard case .gesture(let gesture)? = events(edges, prompt: .denial).last else {
        Issue.record("no gesture: \(edges)")
        continue
      }
      #expect(gesture.decision != .accept)
    }
  }

  @Test("A hold that is not released is nothing") func aHoldThatIsNotReleasedIsNothing() {
    #expect(gestures([(600, true)]) == [])
  }

  @Test("A short press without a second one is reported, and answers nothing; a middling press is nothing")
  func shortAndMiddlingPresses() {
    for prompt in [Prompt.confirmation, .digits(count: 5), .denial] {
      #expect(events([(600, true), (700, false)], prompt: prompt) == [.touched, .shortPress, .released])
      #expect(events([(600, true), (1199, false)], prompt: prompt) == [.touched, .shortPress, .released])
      #expect(events([(600, true), (1200, false)], prompt: prompt) == [.touched, .released])
      #expect(events([(600, true), (1399, false)], prompt: prompt) == [.touched, .released])
    }
    #expect(events([(499, true), (600, false)]) == [.tooEarly])
    #expect(
      events([(600, true), (700, false), (1300, true), (2300, false)])
        == [
          .touched, .shortPress, .released, .touched, .longEnoughToAccept,
          .gesture(Gesture(.hold, held: .seconds(1))),
        ])
  }

  @Test("Two presses deny if their beginnings are close", arguments: [(Int64(600), true), (601, false)])
  func twoPressesDenyIfTheirBeginningsAreClose(gap: Int64, isDeny: Bool) {
    let kinds = gestures([(1000, true), (1100, false), (1000 + gap, true), (1100 + gap, false)])
    #expect(kinds == (isDeny ? [.doublePress] : []))
  }

  @Test("A second press denies however long it is held") func aSecondPressDeniesHoweverLongItIsHeld() {
    #expect(gestures([(1000, true), (1100, false), (1300, true), (9000, false)]) == [.doublePress])
  }

  @Test("A press before the guard time counts for nothing") func aPressBeforeTheGuardTimeCountsForNothing() {
    #expect(gestures([(499, true), (5000, false)]) == [])
    // It does not disturb a later hold either.
    #expect(gestures([(100, true), (200, false), (2000, true), (3000, false)]) == [.hold])
  }

  @Test("A button held from before counts for nothing") func aButtonHeldFromBeforeCountsForNothing() {
    #expect(gestures([(2000, false)], downAtStart: true) == [])
    #expect(gestures([(2000, false), (3000, true), (4000, false)], downAtStart: true) == [.hold])
  }

  @Test("A stuck button is reported once and counts for nothing") func aStuckButtonIsReportedOnceAndCountsForNothing() {
    #expect(
      events([(600, true), (20_000, false)]) == [
        .touched, .longEnoughToAccept, .longEnoughToReport, .stuck, .released,
      ])
    #expect(events([(15_000, false)], downAtStart: true) == [.stuck, .released])
    #expect(events([], downAtStart: true) == [.stuck])
  }

  @Test("The thresholds are reported before the release") func thresholdsAreReportedBeforeTheRelease() {
    #expect(
      events([(600, true), (7000, false)]) == [
        .touched, .longEnoughToAccept, .longEnoughToReport, .gesture(Gesture(.veryLongHold, held: .milliseconds(6400))),
      ])
  }

  @Test(
    "Other prompts leave gestures out",
    arguments: [
      ([(600, true), (1399, false)], [.touched, .released], [.touched, .released]),
      (
        [(600, true), (1400, false)], [.touched, .released, .ineffective], [.touched, .released, .ineffective]
      ),
      (
        [(600, true), (700, false), (900, true), (1000, false)],
        [.touched, .gesture(Gesture(.doublePress, held: .milliseconds(100)))],
        [.touched, .gesture(Gesture(.doublePress, held: .milliseconds(100)))]
      ),
      (
        [(600, true), (7600, false)],
        [.touched, .longEnoughToReport, .gesture(Gesture(.veryLongHold, held: .seconds(7)))],
        [.touched, .longEnoughToReport, .gesture(Gesture(.veryLongHold, held: .seconds(7)))]
      ),
    ] as [([(Int64, Bool)], [Event], [Event])])
  func otherPromptsLeaveGesturesOut(edges: [(Int64, Bool)], digits: [Event], veryLongHold: [Event]) {
    #expect(events(edges, prompt: .digits(count: 5)) == digits)
    #expect(events(edges, prompt: .veryLongHold) == veryLongHold)
  }

  @Test("A press of the deny button denies however long it is held", arguments: [1, 200, 900, 7000])
  func pressOfTheDenyButtonDenies(milliseconds: Int64) {
    func moment(_ milliseconds: Int64) -> MonotonicInstant { MonotonicInstant(uptime: .milliseconds(milliseconds)) }
    for prompt in [Prompt.confirmation, .digits(count: 5), .denial, .veryLongHold] {
      var recognizer = GestureRecognizer(for: prompt, timing: GestureTiming(), armedAt: moment(0), isDown: false)
      #expect(recognizer.press(.deny, at: moment(600)) == [.touched])
      let denied = [Event.gesture(Gesture(.denyButton, held: .milliseconds(milliseconds)))]
      #expect(recognizer.release(at: moment(600 + milliseconds)) == denied)
    }
  }

  @Test("The deny button follows the rules for presses") func denyButtonFollowsTheRulesForPresses() {
    func moment(_ milliseconds: Int64) -> MonotonicInstant { MonotonicInstant(uptime: .milliseconds(milliseconds)) }
    var recognizer = GestureRecognizer(timing: GestureTiming(), armedAt: moment(0), isDown: false)
    #expect(recognizer.press(.deny, at: moment(499)) == [.tooEarly])
    #expect(recognizer.release(at: moment(700)) == [])
    // After a short press of the main button it denies by itself.
    #expect(recognizer.press(.approve, at: moment(1000)) == [.touched])
    #expect(recognizer.release(at: moment(1100)) == [])
    #expect(recognizer.press(.deny, at: moment(1300)) == [])
    #expect(recognizer.time(moment(11_300)) == [.stuck])
    #expect(recognizer.release(at: moment(11_400)) == [.released])
    #expect(recognizer.press(.deny, at: moment(12_000)) == [.touched])
    #expect(recognizer.release(at: moment(12_100)) == [.gesture(Gesture(.denyButton, held: .milliseconds(100)))])
  }

  @Test("A line that came back begins again") func aLineThatCameBackBeginsAgain() {
    func moment(_ milliseconds: Int64) -> MonotonicInstant { MonotonicInstant(uptime: .milliseconds(milliseconds)) }
    var recognizer = GestureRecognizer(timing: GestureTiming(), armedAt: moment(0), isDown: false)
    #expect(recognizer.press(.approve, at: moment(600)) == [.touched])
    recognizer.forget(at: moment(700))
    #expect(recognizer.release(at: moment(2000)) == [])
    #expect(recognizer.press(.approve, at: moment(2100)) == [.touched])
  }

  @Test("After a gesture nothing more happens") func afterAGestureNothingMoreHappens() {
    #expect(gestures([(600, true), (1600, false), (3000, true), (4000, false)]) == [.hold])
  }

  /// For random presses there is at most one gesture, and it accepts only after a hold.
  @Test("A random hammerer never accepts without a hold") func aRandomHammererNeverAcceptsWithoutAHold() {
    var generator = SystemRandomNumberGenerator()
    let seed = UInt64.random(in: .min ... .max, using: &generator)
    var random = SeededGenerator(seed: seed)
    for _ in 0..<2000 {
      var edges: [(Int64, Bool)] = []
      var time: Int64 = 0
      for index in 0..<Int(random.next() % 12 + 1) {
        time += Int64(random.next() % 1500)
        edges.append((time, index % 2 == 0))
      }
      let kinds = gestures(edges)
      #expect(kinds.count <= 1, "seed \(seed)")
      if kinds == [.hold] {
        let holds = zip(edges, edges.dropFirst()).filter { $0.0.1 && !$0.1.1 }
        #expect(holds.contains { $0.0.0 >= 500 && (800..<6000).contains($0.1.0 - $0.0.0) }, "seed \(seed)")
      }
    }
  }
}
