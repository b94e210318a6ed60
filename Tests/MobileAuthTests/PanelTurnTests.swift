// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

/// Servers with valid requests do not keep the requests of others off the panel.
@Suite(.timeLimit(.minutes(5))) struct PanelTurnTests {
  private let fixture = HandlerFixture()

  private func request(_ number: Int, of server: ScriptedServerClient) -> PendingMobileAuthRequest {
    fixture.request(number, of: server, lives: .seconds(86_400))
  }

  private var shown: TransactionID? { fixture.inbox.panel.shown.request?.pending.transaction }

  /// Lists the requests and waits until the first of them, which was not on the panel, can be answered there.
  private func show(_ numbers: [Int], of server: ScriptedServerClient) async {
    let prompts = fixture.panel.prompts.count
    fixture.announce(numbers.map { request($0, of: server) }, by: server)
    let first = numbers.first.map(HandlerFixture.transaction)
    await HandlerFixture.turn { shown == first && fixture.panel.prompts.count > prompts }
  }

  /// Lets time pass in steps; before each, `act` gets its number.
  /// - Returns: how long it took until the condition held, by the clock of the handler; nil if it did not.
  private func time(
    atMost limit: Duration, in length: Duration = .seconds(2), until isDone: () -> Bool,
    _ act: (Int) -> Void = { _ in }
  ) async -> Duration? {
    let start = fixture.clock.now
    var step = 0
    while fixture.clock.now - start <= limit {
      act(step)
      step += 1
      // The handler has time to show what it opens; sleeping leaves the processor to it.
      for _ in 0..<10 where !isDone() { try? await Task.sleep(for: .milliseconds(5)) }
      if isDone() { return fixture.clock.now - start }
      fixture.clock.advance(by: length)
    }
    return nil
  }

  /// The third server lists request 3; it must be on the panel within 2 s.
  private func thirdIsShown(_ act: (Int) -> Void = { _ in }) async {
    fixture.announce([request(3, of: fixture.thirdServer)], by: fixture.thirdServer)
    let third = HandlerFixture.transaction(3)
    #expect(await time(atMost: .seconds(2), in: .milliseconds(100), until: { shown == third }, act) != nil)
  }

  @Test("A server whose request was replaced by its own newer one does not hold the panel against others")
  func ownPreemption() async throws {
    try await fixture.withHandler {
      await show([1], of: fixture.server)
      await show([11, 1], of: fixture.server)
      await show([1], of: fixture.server)
      await thirdIsShown()
      fixture.panel.perform(accept)
      await HandlerFixture.turn { fixture.thirdServer.delivered.count == 1 }
    }
  }

  @Test("Two servers that replace each other's requests do not hold the panel against a third") func mutualPreemption()
    async throws
  {
    try await fixture.withHandler {
      await show([1], of: fixture.server)
      await show([2], of: fixture.otherServer)
      fixture.announce([], by: fixture.otherServer)
      await HandlerFixture.turn { shown == HandlerFixture.transaction(1) }
      await thirdIsShown()
    }
  }

  @Test("A server that lists newer requests all the time does not delay the request of another one") func flood()
    async throws
  {
    try await fixture.withHandler {
      await show([1], of: fixture.server)
      await thirdIsShown { fixture.announce([request(100 + $0, of: fixture.server)], by: fixture.server) }
    }
  }

  @Test("A request that was replaced by those of a flooding server has its turn after a minute, for a minute")
  func turns() async throws {
    let third = HandlerFixture.transaction(3)
    try await fixture.withHandler {
      await show([3], of: fixture.thirdServer)
      await show([100], of: fixture.server)
      // The former ones stay in the list.
      let flood = { (step: Int) in
        fixture.announce((0...step).reversed().map { request(100 + $0, of: fixture.server) }, by: fixture.server)
      }
      let delay = await time(atMost: .seconds(65), until: { shown == third }, flood)
      #expect(delay.map { $0 > .seconds(50) && $0 < .seconds(63) } == true, "\(String(describing: delay))")
      let stay = await time(atMost: .seconds(70), until: { shown != third }) { flood($0 + 50) }
      #expect(stay.map { $0 > .seconds(50) && $0 < .seconds(63) } == true, "\(String(describing: stay))")
    }
  }

  @Test("A server that withdraws each request before it is opened does not delay those of others")
  func withdrawnOpenings() async throws {
    let third = HandlerFixture.transaction(3)
    fixture.server.hang("open")
    fixture.announce([request(3, of: fixture.thirdServer)], by: fixture.thirdServer)
    fixture.announce([request(100, of: fixture.server)], by: fixture.server)
    try await fixture.withHandler {
      let delay = await time(atMost: .seconds(2), in: .milliseconds(100), until: { shown == third }) {
        if $0.isMultiple(of: 5) { fixture.announce([request(101 + $0, of: fixture.server)], by: fixture.server) }
      }
      #expect(delay != nil)
    }
  }

  /// Presses the button shortly and waits until the handler has noted it.
  private func touch() async {
    fixture.panel.perform(.touched)
    fixture.panel.perform(.released)
    let isNoted = await HandlerFixture.turn { isHeld }
    #expect(isNoted)
  }

  private var isHeld: Bool { fixture.inbox.pending.holdEnd(of: HandlerFixture.transaction(1)) != nil }

  @Test("A touch keeps a request on the panel for a minute", arguments: [true, false])
  func touchIsLimited(isTouched: Bool) async throws {
    let third = HandlerFixture.transaction(3)
    try await fixture.withHandler {
      await show([1], of: fixture.server)
      if isTouched { await touch() }
      fixture.announce([request(3, of: fixture.thirdServer)], by: fixture.thirdServer)
      let delay = await time(atMost: .seconds(65), until: { shown == third }) ?? .seconds(99)
      #expect(delay < (isTouched ? .seconds(63) : .seconds(3)) && delay > (isTouched ? .seconds(55) : .seconds(-1)))
    }
  }

  @Test("A choice and a wrong entry keep a request on the panel for a minute", arguments: [true, false])
  func choiceIsLimited(isChoice: Bool) async throws {
    let third = HandlerFixture.transaction(3)
    try await fixture.withHandler {
      if !isChoice {
        fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
      }
      await show([1], of: fixture.server)
      if isChoice {
        fixture.inbox.choose(HandlerFixture.transaction(1))
      } else {
        fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
        fixture.panel.perform(.typed("13579"))
        await fixture.panel.until(challenges: 2)
      }
      fixture.announce([request(3, of: fixture.thirdServer)], by: fixture.thirdServer)
      let delay = await time(atMost: .seconds(65), until: { shown == third })
      #expect(delay.map { $0 > .seconds(55) && $0 < .seconds(63) } == true, "\(String(describing: delay))")
    }
  }

  @Test("Openings of one server: ten at once, then one in three seconds") func openingsArePaced() async throws {
    try await fixture.withHandler {
      await show([100], of: fixture.server)
      _ = await time(atMost: .seconds(60), until: { false }) {
        fixture.announce([request(101 + $0, of: fixture.server)], by: fixture.server)
      }
    }
    #expect((20...31).contains(fixture.server.calls(of: "open")), "\(fixture.server.calls(of: "open"))")
  }

  // MARK: The order alone

  private let one = TokenServerID("one")
  private let other = TokenServerID("other")

  /// The servers in the order of their requests; `one` has the newer one.
  private func order(_ turns: PanelTurns, at seconds: Int) -> [TokenServerID] {
    let requests = [(one, 2), (other, 1)].map { server, number in
      var request = fixture.request(number)
      request.server = server
      return (request: request, number: number)
    }
    return turns.sort(requests, at: instant(seconds)).map(\.server)
  }

  private func instant(_ seconds: Int) -> MonotonicInstant { MonotonicInstant(uptime: .seconds(seconds)) }

  @Test("The newest request is first, unless its server's turn is over or it lost the panel") func order() {
    let turns = PanelTurns()
    #expect(order(turns, at: 0) == [one, other] && turns.end(at: instant(0)) == nil)
    turns.begin(one, number: 2, at: instant(0))
    #expect(order(turns, at: 59) == [one, other] && turns.end(at: instant(59)) == instant(60))
    #expect(order(turns, at: 60) == [other, one])
    turns.leave(isAnswered: false, at: instant(60))
    turns.begin(other, number: 1, at: instant(60))
    #expect(order(turns, at: 61) == [other, one])
    turns.leave(isAnswered: false, at: instant(70))
    turns.begin(one, number: 2, at: instant(70))
    // The server that lost the panel longest ago is first.
    #expect(order(turns, at: 71) == [one, other])
    // Losses and a turn that was left are forgotten.
    turns.leave(isAnswered: false, at: instant(80))
    #expect(order(turns, at: 700) == [one, other] && turns.end(at: instant(140)) == nil)
  }

  @Test("A server whose request was answered has not lost the panel") func answered() {
    let turns = PanelTurns()
    turns.begin(one, number: 2, at: instant(0))
    turns.leave(isAnswered: true, at: instant(10))
    turns.begin(other, number: 1, at: instant(11))
    #expect(order(turns, at: 12) == [one, other])
  }
}
