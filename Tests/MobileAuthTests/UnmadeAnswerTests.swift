// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// An answer that cannot be made for a reason that may pass: nothing is decided, and the request stays pending.
@Suite(.timeLimit(.minutes(5))) struct UnmadeAnswerTests {
  private let fixture = HandlerFixture()
  private let fault = TokenServerError.unreachable("the disk does not respond")

  init() {
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
  }

  private var outcomes: [String] { fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) }

  /// Fails if the request ends on this token although its server still waits for an answer.
  @Test("The request is asked for again, and the next entry approves it") func asksAgain() async throws {
    fixture.server.fail("seal", fault)
    try await fixture.handlesRequest {
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(challenges: 2)
      // Without another entry there is no other attempt.
      for _ in 0..<1000 { await Task.yield() }
      #expect(fixture.server.calls(of: "seal") == 1)
      #expect(outcomes.isEmpty)
      fixture.panel.perform(.typed("13579"))
    }
    #expect(outcomes == ["approved, receipt receipt-1"])
    #expect(fixture.panel.shown.contains(.seeLog))
    #expect(fixture.panel.prompts == [.digits(count: 5), .digits(count: 5)])
    #expect(fixture.server.calls(of: "open") == 2 && fixture.server.delivered.count == 1)
    #expect(fixture.stateStore.audit.map(\.kind) == [.announced, .opened, .opened, .decided, .settled])
    #expect(fixture.events.all.contains(.retrying(fixture.server.id, HandlerFixture.transaction(1), fault)))
  }

  /// Fails if a driver that answers without the user is asked again and again.
  @Test("The third answer that cannot be made ends the request") func ends() async throws {
    fixture.server.breakDown("seal", fault)
    try await fixture.handlesRequest {
      for number in 1...3 {
        await fixture.panel.until(challenges: number)
        fixture.panel.perform(.typed("13579"))
      }
    }
    #expect(fixture.server.calls(of: "seal") == 3 && fixture.panel.prompts.count == 3)
    #expect(fixture.server.delivered.isEmpty)
    #expect(outcomes.count == 1 && outcomes[0].hasPrefix("not approved"))
  }

  /// Which of the request's tasks ends first is left to chance.
  @Test("A reload while a PIN is verified leaves the request pending", arguments: 1...20)
  func reload(run: Int) async throws {
    fixture.server.hang("seal")
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("13579"))
      await HandlerFixture.turn { fixture.server.calls(of: "seal") == 1 }
    }
    #expect(outcomes.isEmpty && fixture.server.delivered.isEmpty)
    #expect(fixture.inbox.pending.all.map(\.transaction) == [HandlerFixture.transaction(1)])
    try await fixture.withHandler { await fixture.panel.until(challenges: 2) }
  }
}
