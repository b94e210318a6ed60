// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

/// Lists that are read at the same time, and lists that contradict the server's status.
@Suite(.timeLimit(.minutes(5))) struct ListOrderTests {
  private let fixture = HandlerFixture()

  /// Fails if the list that comes last counts: the login that its user is about to approve ends for good.
  @Test("A list that was requested before a newer one ends no request of the newer one") func lateList() async throws {
    let listener = RequestListener(
      to: fixture.server, inbox: fixture.inbox, stateStore: fixture.stateStore, in: fixture.environment)
    let running = Task { try await listener.run() }
    defer { running.cancel() }
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    let gate = fixture.server.hold("pendingRequests")
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: RequestListener.listInterval)
    try await eventually("a reading without a hint") { fixture.server.calls(of: "pendingRequests") == 2 }
    try await fixture.withHandler {
      fixture.server.set(list: [fixture.request(1)])
      fixture.server.hint(.pendingChanged)
      await fixture.panel.until(challenges: 1)
      // The end of the late reading connects a stopped server.
      fixture.inbox.connectivity.set(.stopped, to: fixture.server.id, because: .outdated("old"))
      gate.open()
      try await eventually("the late list") { fixture.inbox.connectivity[fixture.server.id] == .connected }
      #expect(fixture.inbox.pending.contains(HandlerFixture.transaction(1)))
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["approved, receipt receipt-1"])
    running.cancel()
    _ = try? await running.finished()
  }

  @Test("Of each server, a list is applied only if it was requested after the one before") func order() {
    let (request, other) = (fixture.request(1), fixture.request(2, of: fixture.otherServer))
    var blocked = fixture.request(3)
    blocked.blockedBy = BlockedRequestInfo(lock: "locked", contents: "")
    let numbers = (1...3).map { _ in fixture.inbox.pending.nextList() }
    fixture.inbox.replace(requestsOf: fixture.server.id, with: [request, blocked], number: numbers[1])
    fixture.inbox.replace(requestsOf: fixture.server.id, with: [], number: numbers[0])
    fixture.inbox.replace(requestsOf: fixture.otherServer.id, with: [other], number: numbers[0])
    #expect(Set(fixture.inbox.pending.all.map(\.transaction)) == Set([1, 2, 3].map(HandlerFixture.transaction)))
    #expect(fixture.inbox.blocked.unreported(of: fixture.server.id).map(\.transaction) == [blocked.transaction])
    fixture.inbox.replace(requestsOf: fixture.server.id, with: [], number: numbers[2])
    #expect(fixture.inbox.pending.all.map(\.transaction) == [other.transaction])
    #expect(fixture.inbox.blocked.unreported(of: fixture.server.id).isEmpty)
  }

  /// Fails if a list that lacks an open request, for whatever reason, ends it for good.
  @Test("A request that left the list, but is open at its server, is asked for when it is listed again")
  func openElsewhere() async throws {
    let request = fixture.request(1)
    fixture.server.set(status: RemoteStatus(state: .open), of: request.transaction)
    try await fixture.withHandler {
      fixture.announce(request)
      await fixture.panel.until(challenges: 1)
      fixture.announce()
      try await eventually("the end of the request") { !fixture.stateStore.outcomes(of: request.transaction).isEmpty }
      await fixture.panel.until(showing: .idle(pending: 0))
      // A list that comes before the end is recorded restores nothing.
      await HandlerFixture.turn {
        fixture.announce(request)
        return fixture.panel.prompts.count == 2
      }
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(
      fixture.stateStore.outcomes(of: request.transaction) == [
        "no longer listed by the token server, which calls it open", "approved, receipt receipt-1",
      ])
  }
}
