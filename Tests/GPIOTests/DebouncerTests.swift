// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import GPIO
import Testing

@Suite("Debouncing a contact", .timeLimit(.minutes(5))) struct DebouncerTests {
  /// Input edges as (active, milliseconds), and the expected settled edges.
  struct Case: CustomTestStringConvertible {
    let testDescription: String
    let edges: [(Bool, Double)]
    let settled: [(Bool, Double)]
  }

  static let cases = [
    Case(testDescription: "a clean press", edges: [(true, 10), (false, 100)], settled: [(true, 10), (false, 100)]),
    Case(
      testDescription: "a press that bounces is dated by its last edge",
      edges: [(true, 10), (false, 10.1), (true, 12), (false, 16.9), (true, 21.9), (false, 100)],
      settled: [(true, 21.9), (false, 100)]),
    Case(
      testDescription: "a release that bounces is dated by its first edge",
      edges: [(true, 10), (false, 100), (true, 101), (false, 105)], settled: [(true, 10), (false, 100)]),
    Case(
      testDescription: "an edge exactly one window after the last one is still bouncing",
      edges: [(true, 10), (false, 15), (true, 20)], settled: [(true, 20)]),
    Case(
      testDescription: "an edge just after the window is a press of its own",
      edges: [(true, 10), (false, 15.01)], settled: [(true, 10), (false, 15.01)]),
    Case(testDescription: "a glitch is nothing", edges: [(true, 10), (false, 10.2)], settled: []),
    Case(
      testDescription: "a glitch in a hold is nothing", edges: [(true, 10), (false, 500), (true, 501), (false, 900)],
      settled: [(true, 10), (false, 900)]),
    Case(
      testDescription: "the same level twice is a bounce too short to be seen",
      edges: [(true, 10), (true, 30), (false, 34), (true, 38)], settled: [(true, 10)]),
    Case(
      testDescription: "edges out of order by microseconds do no harm",
      edges: [(true, 10), (true, 9.999), (false, 50), (false, 49.99)], settled: [(true, 10), (false, 49.99)]),
  ]

  @Test("Settles as it should", arguments: cases) func settlesAsItShould(_ table: Case) {
    var debouncer = Debouncer(isActive: false)
    var settled: [Debouncer.Edge] = []
    for (isActive, at) in table.edges {
      if let edge = debouncer.edge(isActive: isActive, at: .milliseconds(at)) { settled.append(edge) }
    }
    if let edge = debouncer.time(.seconds(2)) { settled.append(edge) }
    let expected = table.settled.map { Debouncer.Edge(isActive: $0, at: .milliseconds($1)) }
    // Whether the earlier of two edges out of order is the first of its burst depends only on the window.
    #expect(settled.map(\.isActive) == expected.map(\.isActive))
    for (one, other) in zip(settled, expected) { #expect(abs((one.at - other.at) / .milliseconds(1)) < 0.02) }
  }

  @Test("Has a timeout only while a bounce is settling") func hasATimeoutOnlyWhileABounceIsSettling() {
    var debouncer = Debouncer(window: .milliseconds(5), isActive: false)
    #expect(debouncer.nextDeadline == nil)
    _ = debouncer.edge(isActive: true, at: .milliseconds(10))
    #expect(debouncer.nextDeadline == .milliseconds(15) + .nanoseconds(1))
    #expect(debouncer.time(.milliseconds(15)) == nil)
    #expect(debouncer.time(debouncer.nextDeadline!) == Debouncer.Edge(isActive: true, at: .milliseconds(10)))
    #expect(debouncer.nextDeadline == nil)
  }

  @Test("A level that was read corrects lost edges") func aLevelThatWasReadCorrectsLostEdges() {
    var debouncer = Debouncer(isActive: true)
    #expect(debouncer.level(isActive: true, at: .milliseconds(5)) == nil)
    #expect(debouncer.nextDeadline == nil)
    #expect(debouncer.level(isActive: false, at: .milliseconds(10)) == nil)
    #expect(debouncer.time(.milliseconds(20)) == Debouncer.Edge(isActive: false, at: .milliseconds(10)))
  }

  @Test(
    "Keeps the window within its bounds", arguments: [(Duration.zero, 1), (.milliseconds(7), 7), (.seconds(9), 50)])
  func keepsTheWindowWithinItsBounds(_ window: Duration, _ milliseconds: Int) {
    var debouncer = Debouncer(window: window, isActive: false)
    _ = debouncer.edge(isActive: true, at: .zero)
    #expect(debouncer.nextDeadline == .milliseconds(milliseconds) + .nanoseconds(1))
  }

  /// A worn switch: every press is reported once, and no hold is longer than the time for which the contact was closed.
  @Test("Counts every press once, however it bounces", arguments: 0..<200) func countsEveryPressOnceHoweverItBounces(
    _ seed: UInt64
  ) {
    var random = SeededGenerator(seed: seed)
    var debouncer = Debouncer(isActive: false)
    var settled: [Debouncer.Edge] = []
    var closed: [ClosedRange<Duration>] = []
    var now = Duration.milliseconds(20)
    func bounce(to isActive: Bool) -> ClosedRange<Duration> {
      let first = now
      settled += [debouncer.edge(isActive: isActive, at: now)].compactMap(\.self)
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        for level in [!isActive, isActive] {
          now += .microseconds(Int.random(in: 100...5000, using: &random))
          // A call of `time` between edges must change nothing.
          if Bool.random(using: &random) { settled += [debouncer.time(now)].compactMap(\.self) }
          settled += [debouncer.edge(isActive: level, at: now)].compactMap(\.self)
        }
      }
      return first...now
    }
    let presses = Int.random(in: 1...5, using: &random)
    for _ in 0..<presses {
      let down = bounce(to: true)
      now += .microseconds(Int.random(in: 5001...900_000, using: &random))
      let up = bounce(to: false)
      now += .microseconds(Int.random(in: 5001...900_000, using: &random))
      closed.append(down.upperBound...up.lowerBound)
    }
    settled += [debouncer.time(now)].compactMap(\.self)
    #expect(settled.map(\.isActive) == (0..<presses).flatMap { _ in [true, false] }, "seed \(seed)")
    #expect(settled.map(\.at) == closed.flatMap { [$0.lowerBound, $0.upperBound] }, "seed \(seed)")
  }
}
