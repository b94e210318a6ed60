// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

@Suite(.timeLimit(.minutes(5))) struct HandlerTests {
  @Test(arguments: [
    (accept, "approved, receipt receipt-1", Indication.confirmed),
    (deny, "denied (declined), receipt receipt-1", .denied),
    (notMe, "denied (not-me), receipt receipt-1", .denied),
  ])
  func aGestureBecomesTheServersWord(gesture: PanelEvent, outcome: String, shown: Indication) async throws {
    let world = World()
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(gesture)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == [outcome])
    #expect(world.panel.shown.contains(shown))
    #expect(world.panel.shown.contains(.talkingToServer))
    #expect(world.server.delivered.count == 1)
    #expect(try world.custody.unsettledIntents().isEmpty)
    #expect(world.custody.audit.map(\.kind) == [.announced, .opened, .decided, .settled])
  }

  @Test func duplicatesAreHandledOnce() async throws {
    let world = World()
    try await world.withHandler {
      let request = world.request(1)
      world.announce(request)
      world.announce(request)
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(showing: .idle(pending: 0))
      // A list requested before the answer was sent.
      world.announce(request)
      world.announce(world.request(2))
      await world.panel.until(challenges: 2)
    }
    #expect(world.server.delivered.count == 1)
    #expect(world.custody.audit.filter { $0.kind == .announced }.map(\.transaction) == [1, 2].map(World.transaction))
  }

  @Test func theNewestComesFirstAndTheOldStaysPending() async throws {
    let world = World()
    try await world.withHandler {
      world.announce(world.request(2), world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(challenges: 2)
      world.panel.perform(deny)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.server.delivered.map(\.request.pending.transaction) == [2, 1].map(World.transaction))
  }

  @Test func anUntouchedRequestMakesWayForANewerOne() async throws {
    let world = World()
    try await world.withHandler {
      let old = world.request(1, sentAt: 1000)
      world.announce(old)
      await world.panel.until(challenges: 1)
      world.announce(old, world.request(2, sentAt: 2000))
      await world.panel.until(challenges: 2)
      world.panel.perform(accept)
      await world.panel.until(challenges: 3)
    }
    #expect(world.server.delivered.map(\.request.pending.transaction) == [World.transaction(2)])
    #expect(world.custody.outcomes(of: World.transaction(1)).isEmpty)
  }

  @Test func aTouchedRequestIsNeverSwapped() async throws {
    let world = World()
    try await world.withHandler {
      let old = world.request(1, sentAt: 1000)
      world.announce(old)
      await world.panel.until(challenges: 1)
      world.panel.perform(.touched)
      // The "stuck" audit entry is written only after the touch was handled, so it shows that point without a clock.
      world.panel.perform(.unavailable("settle"))
      try await eventually { world.custody.audit.contains(where: { $0.kind == .panelUnavailable }) }
      world.announce(old, world.request(2, sentAt: 2000))
      world.panel.perform(accept)
      await world.panel.until(challenges: 2)
    }
    #expect(world.server.delivered.first?.request.pending.transaction == World.transaction(1))
  }

  @Test func expiryWhileHoldingApprovesNothing() async throws {
    let world = World()
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(10)))
      await world.panel.until(challenges: 1)
      world.panel.perform(.touched)
      world.timekeeper.advance(by: .seconds(10))
      await world.panel.until(showing: .idle(pending: 0))
      world.panel.perform(accept)
      // The answer after that shows that the former press was handled and ignored.
      world.announce(world.request(2))
      await world.panel.until(challenges: 2)
      world.panel.perform(deny)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["expired"])
    #expect(world.server.delivered.map(\.request.pending.transaction) == [World.transaction(2)])
    #expect(world.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  @Test(arguments: [
    (RemoteState.authenticated, "approved elsewhere"), (.rejected, "denied elsewhere"), (.superseded, "superseded"),
    (.cancelled, "cancelled"), (.expired, "expired"),
  ])
  func aRequestThatLeftTheListIsOver(state: RemoteState, outcome: String) async throws {
    let world = World()
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(.touched)
      world.server.set(status: RemoteStatus(state: state), of: World.transaction(1))
      world.announce()
      await world.panel.until(showing: .idle(pending: 0))
      world.panel.perform(accept)
      #expect(await World.turn { !world.custody.outcomes(of: World.transaction(1)).isEmpty })
      world.announce(world.request(2))
      await world.panel.until(challenges: 2)
      world.panel.perform(deny)
      #expect(await World.turn { !world.custody.outcomes(of: World.transaction(2)).isEmpty })
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == [outcome])
    #expect(world.server.delivered.map(\.request.pending.transaction) == [World.transaction(2)])
    #expect(world.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  @Test func aStuckButtonIsWrittenDown() async throws {
    let world = World()
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(.stuck)
      world.panel.perform(.released)
      world.panel.perform(deny)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.audit.contains { $0.kind == .buttonStuck })
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["denied (declined), receipt receipt-1"])
  }

  @Test func aWrongClockChangesNothing() async throws {
    let world = World(wallClockMilliseconds: 0)
    try await world.withHandler {
      world.announce(world.request(1, sentAt: 1_790_000_000_000))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["approved, receipt receipt-1"])
  }
}
