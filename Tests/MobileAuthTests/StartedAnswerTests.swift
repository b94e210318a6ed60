// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

@Suite(.timeLimit(.minutes(5))) struct StartedAnswerTests {
  private let fixture = HandlerFixture()
  private var answer: StartedAnswer { fixture.inbox.panel.startedAnswer }
  private let limit = Duration.seconds(30)

  /// Shows the request 1, and does `body` with its first challenge.
  private func withRequest(_ body: () async throws -> Void) async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      try await body()
    }
  }

  private func hasEnded() async throws -> Bool {
    try await answer.waitForEnd(until: fixture.clock.now + limit, in: fixture.environment)
  }

  @Test("A request that is only shown delays no stop, and no other request is shown") func untouched() async throws {
    try await withRequest { #expect(!answer.stop()) }
    #expect(fixture.server.delivered.isEmpty)
    try await fixture.withHandler {
      fixture.announce(fixture.request(2))
      for _ in 0..<1000 { await Task.yield() }
    }
    #expect(fixture.server.calls(of: "open") == 1)
  }

  @Test("A touch that has begun becomes an approval, after which nothing is shown") func touched() async throws {
    try await withRequest {
      fixture.panel.perform(.touched)
      await HandlerFixture.turn { answer.isUnderway }
      #expect(answer.stop())
      fixture.announce(fixture.request(1), fixture.request(2))
      fixture.panel.perform(accept)
      let isOver = try await hasEnded()
      #expect(isOver)
    }
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(1)])
    #expect(fixture.panel.shown.last == .confirmed)
    #expect(try fixture.stateStore.unresolvedIntents().isEmpty)
  }

  @Test("A touch that ends without a gesture delays the stop no longer") func released() async throws {
    try await withRequest {
      fixture.panel.perform(.touched)
      await HandlerFixture.turn { answer.isUnderway }
      #expect(answer.stop())
      fixture.panel.perform(.released)
      let isOver = try await hasEnded()
      #expect(isOver)
    }
    #expect(fixture.server.delivered.isEmpty)
  }

  @Test("A touch that lasts delays the stop until the limit") func stuck() async throws {
    try await withRequest {
      fixture.panel.perform(.touched)
      await HandlerFixture.turn { answer.isUnderway }
      #expect(answer.stop())
      let end = fixture.clock.now + limit
      let waiting = Task { try await answer.waitForEnd(until: end, in: fixture.environment) }
      fixture.clock.advance(by: limit)
      let isOver = try await waiting.finished()
      #expect(!isOver)
    }
    #expect(fixture.server.delivered.isEmpty)
  }

  @Test("A wrong PIN ends the answer: the request is not asked for again") func wrongPIN() async throws {
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    fixture.server.breakDown("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await withRequest {
      fixture.panel.perform(.touched)
      await HandlerFixture.turn { answer.isUnderway }
      #expect(answer.stop())
      fixture.panel.perform(.typed("13579"))
      let isOver = try await hasEnded()
      #expect(isOver)
    }
    #expect(fixture.server.delivered.count == 1)
    #expect(fixture.panel.prompts.count == 1)
    #expect(fixture.stateStore.audit.count { $0.kind == .pinWrong } == 1)
  }

  @Test("After a step of several, the stop waits for the next one") func steps() async throws {
    let counts = FailureCounts(max: 3, previous: 0)
    let challenge = try #require(
      ChoiceChallenge(options: ["12", "34"], counts: counts, pin: PINChallenge(length: 5, counts: counts)))
    fixture.server.set(challenge: .choice(challenge))
    try await withRequest {
      fixture.panel.perform(.typed("34"))
      await fixture.panel.until(challenges: 2)
      #expect(answer.stop())
      fixture.panel.perform(.typed("13579"))
      let isOver = try await hasEnded()
      #expect(isOver)
    }
    #expect(fixture.server.delivered.count == 1)
  }
}
