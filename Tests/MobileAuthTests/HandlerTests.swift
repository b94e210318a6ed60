// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

@Suite(.timeLimit(.minutes(5))) struct HandlerTests {
  @Test(
    "A gesture becomes the servers word",
    arguments: [
      (accept, "approved, receipt receipt-1", Indication.confirmed),
      (deny, "denied (declined), receipt receipt-1", .denied),
      (notMe, "denied (not-me), receipt receipt-1", .denied),
    ])
  func aGestureBecomesTheServersWord(gesture: PanelEvent, outcome: String, shown: Indication) async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(gesture)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == [outcome])
    #expect(fixture.panel.shown.contains(shown))
    #expect(fixture.panel.shown.contains(.talkingToServer))
    #expect(fixture.server.delivered.count == 1)
    #expect(try fixture.stateStore.unresolvedIntents().isEmpty)
    #expect(fixture.stateStore.audit.map(\.kind) == [.announced, .opened, .decided, .settled])
  }

  @Test(
    "The audit chain names the gesture",
    arguments: [
      (accept, "accept by hold, held 1000 ms"), (deny, "deny by double-press, held 100 ms"),
      (.gesture(Gesture(.denyButton, held: .milliseconds(200))), "deny by deny-button, held 200 ms"),
      (notMe, "deny by very-long-hold, held 7000 ms"),
      (.gesture(Gesture(.cancelKeys, held: .zero)), "deny by cancel keys"),
    ] as [(PanelEvent, String)])
  func auditChainNamesTheGesture(gesture: PanelEvent, detail: String) async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(gesture)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.audit.filter { $0.kind == .decided }.map(\.detail) == [detail])
  }

  @Test("Duplicates are handled once") func duplicatesAreHandledOnce() async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      let request = fixture.request(1)
      fixture.announce(request)
      fixture.announce(request)
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
      // A list requested before the answer was sent.
      fixture.announce(request)
      fixture.announce(fixture.request(2))
      await fixture.panel.until(challenges: 2)
    }
    #expect(fixture.server.delivered.count == 1)
    #expect(
      fixture.stateStore.audit.filter { $0.kind == .announced }.map(\.transaction)
        == [1, 2].map(HandlerFixture.transaction))
  }

  @Test("The newest comes first and the old stays pending") func theNewestComesFirstAndTheOldStaysPending() async throws
  {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      fixture.announce(fixture.request(2), fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [2, 1].map(HandlerFixture.transaction))
  }

  @Test("An untouched request makes way for a newer one") func anUntouchedRequestMakesWayForANewerOne() async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      let old = fixture.request(1, sentAt: 1000)
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      fixture.announce(old, fixture.request(2, sentAt: 2000))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(accept)
      await fixture.panel.until(challenges: 3)
    }
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(2)])
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty)
  }

  @Test("A touched request is never swapped") func aTouchedRequestIsNeverSwapped() async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      let old = fixture.request(1, sentAt: 1000)
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.touched)
      // The "stuck" audit entry is written only after the touch was handled, so it shows that point without a clock.
      fixture.panel.perform(.unavailable("settle"))
      try await eventually("the fault in the audit chain") {
        fixture.stateStore.audit.contains(where: { $0.kind == .panelUnavailable })
      }
      fixture.announce(old, fixture.request(2, sentAt: 2000))
      fixture.panel.perform(accept)
      await fixture.panel.until(challenges: 2)
    }
    #expect(fixture.server.delivered.first?.request.pending.transaction == HandlerFixture.transaction(1))
  }

  @Test("Expiry while holding approves nothing") func expiryWhileHoldingApprovesNothing() async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(10)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.touched)
      fixture.clock.advance(by: .seconds(10))
      await fixture.panel.until(showing: .idle(pending: 0))
      fixture.panel.perform(accept)
      // The answer after that shows that the former press was handled and ignored.
      fixture.announce(fixture.request(2))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["expired"])
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(2)])
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  @Test(
    "A request that left the list is over",
    arguments: [
      (RemoteState.authenticated, "approved elsewhere"), (.rejected, "denied elsewhere"), (.superseded, "superseded"),
      (.canceled, "cancelled"), (.expired, "expired"),
    ])
  func aRequestThatLeftTheListIsOver(state: RemoteState, outcome: String) async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.touched)
      fixture.server.set(status: RemoteStatus(state: state), of: HandlerFixture.transaction(1))
      fixture.announce()
      await fixture.panel.until(showing: .idle(pending: 0))
      fixture.panel.perform(accept)
      await HandlerFixture.turn { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)).isEmpty }
      fixture.announce(fixture.request(2))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(deny)
      await HandlerFixture.turn { !fixture.stateStore.outcomes(of: HandlerFixture.transaction(2)).isEmpty }
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == [outcome])
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(2)])
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  @Test("A stuck button is written down") func aStuckButtonIsWrittenDown() async throws {
    let fixture = HandlerFixture()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.stuck)
      fixture.panel.perform(.released)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.audit.contains { $0.kind == .buttonStuck })
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["denied (declined), receipt receipt-1"])
  }

  @Test("A wrong clock changes nothing") func aWrongClockChangesNothing() async throws {
    let fixture = HandlerFixture(wallClockMilliseconds: 0)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, sentAt: 1_790_000_000_000))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["approved, receipt receipt-1"])
  }
}
