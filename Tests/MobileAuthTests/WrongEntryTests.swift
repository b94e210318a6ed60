// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// A token server that refuses an entry although none was made would keep the panel and fill the audit chain while its
/// request is valid. Each test fails without `TokenServerError.plausible` or `withoutEntry`.
@Suite(.timeLimit(.minutes(5))) struct WrongEntryTests {
  private let fixture = HandlerFixture()
  private let wrong = TokenServerError.pinIncorrect(FailureCounts(max: 3, previous: 1))

  private func answer(with events: PanelEvent...) async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(86_400)))
      for (index, event) in events.enumerated() {
        await fixture.panel.until(challenges: index + 1)
        fixture.panel.perform(event)
      }
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).allSatisfy { $0.hasPrefix("not approved") })
    #expect(try fixture.stateStore.unresolvedIntents().isEmpty)
  }

  @Test("A denial that is answered with \"wrong PIN\" ends the request") func denial() async throws {
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    fixture.server.breakDown("deliver", wrong)
    try await answer(with: deny)
    #expect(fixture.server.delivered.count == 1)
  }

  @Test(
    "An approval without a PIN that is answered with a wrong entry ends the request",
    arguments: [
      TokenServerError.pinIncorrect(FailureCounts(max: 3, previous: 1)),
      .choiceIncorrect(FailureCounts(max: 3, previous: 1)),
    ]) func confirmation(fault: TokenServerError) async throws
  {
    fixture.server.breakDown("deliver", fault)
    try await answer(with: accept)
    #expect(fixture.server.delivered.count == 1)
  }

  @Test("A request that cannot be opened again because of a \"wrong PIN\" ends") func opening() async throws {
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    fixture.server.fail("deliver", wrong)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(86_400)))
      await fixture.panel.until(challenges: 1)
      fixture.server.breakDown("open", wrong)
      fixture.panel.perform(.typed("13579"))
      await fixture.pass { fixture.panel.shown.last == .idle(pending: 0) }
    }
    #expect(fixture.server.calls(of: "open") == 2)
    #expect(fixture.stateStore.audit.count { $0.kind == .pinWrong } == 1)
  }
}
