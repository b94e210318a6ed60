// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// A request that requires an action which this token does not support.
@Suite(.timeLimit(.minutes(5))) struct ImpossibleTests {
  private static let typed = PanelEvent.typed("13579")

  @Test("Nothing accepts it", arguments: [accept, Self.typed], [true, false])
  func nothingAcceptsIt(event: PanelEvent, canType: Bool) async throws {
    let fixture = HandlerFixture(canType: canType)
    fixture.server.set(challenge: .impossible(because: "it needs a fingerprint"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.denial] && fixture.panel.shown.contains(.pinWanted))
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["denied (declined), receipt receipt-1"])
  }

  @Test("It is denied", arguments: [(deny, DenialReason.declined), (notMe, .notMe)])
  func itIsDenied(event: PanelEvent, reason: DenialReason) async throws {
    let fixture = HandlerFixture()
    fixture.server.set(challenge: .impossible(because: "it needs a fingerprint"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.map(\.decision) == [.deny(reason)])
  }

  @Test("The reason is known while the request is shown") func reasonIsKnownWhileShown() async throws {
    let fixture = HandlerFixture()
    fixture.server.set(challenge: .impossible(because: "it needs a fingerprint"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      #expect(fixture.inbox.panel.shown.request?.contents.challenge.obstacle == "it needs a fingerprint")
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
      #expect(fixture.inbox.panel.shown.request == nil)
    }
  }

  @Test("A request that cannot be opened is denied at its server") func unopenedRequestIsDenied() async throws {
    let fixture = HandlerFixture()
    fixture.server.fail("open", .notHandleable("forged"))
    fixture.server.fail("deny", .unreachable("down"), .rateLimited(retryAfter: nil))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.pass { fixture.server.denials.count == 3 }
      await HandlerFixture.turn { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
    }
    let key = try #require(fixture.server.denials.first?.idempotencyKey)
    let denial = UnopenedDenial(transaction: HandlerFixture.transaction(1), why: "forged", idempotencyKey: key)
    #expect(fixture.server.denials == [denial, denial, denial])
    #expect(fixture.panel.prompts.isEmpty && fixture.panel.shown.contains(.seeLog))
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).allSatisfy { $0.hasPrefix("not approved") })
  }

  @Test("A denial that its server does not accept is given up", arguments: [true, false])
  func denialIsGivenUp(isRetried: Bool) async throws {
    let fixture = HandlerFixture()
    fixture.server.fail("open", .notHandleable("forged"))
    fixture.server.breakDown("deny", isRetried ? .unreachable("down") : .requestNotFound)
    let isReported = { @Sendable in
      fixture.events.all.contains {
        if case .trouble(_, let what) = $0 { what.contains("could not be denied") } else { false }
      }
    }
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.pass { isReported() }
    }
    #expect(fixture.server.denials.count == (isRetried ? 5 : 1))
  }

  @Test(
    "What ends otherwise is not denied",
    arguments: [
      TokenServerError.requestNotFound, .alreadyHandled(.rejected), .locked("x"), .refused("x"), .notEnrolled,
    ]
  )
  func otherEndsAreNotDenied(fault: TokenServerError) async throws {
    let fixture = HandlerFixture()
    fixture.server.fail("open", fault)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      try await eventually("an end in the audit chain") {
        fixture.stateStore.audit.contains { [.settled, .refused].contains($0.kind) }
      }
      for _ in 0..<100 { await Task.yield() }
    }
    #expect(fixture.server.denials.isEmpty)
  }
}
