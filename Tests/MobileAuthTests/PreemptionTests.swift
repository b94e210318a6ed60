// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Replacement of the request on the panel by another one.
@Suite(.timeLimit(.minutes(5))) struct PreemptionTests {
  private let fixture = HandlerFixture()

  private func outcomes(_ number: Int) -> [String] {
    fixture.stateStore.outcomes(of: HandlerFixture.transaction(number))
  }

  private var delivered: [TransactionID] { fixture.server.delivered.map(\.request.pending.transaction) }

  @Test("A change to another request is shown before its prompt") func changeIsAnnounced() async throws {
    try await fixture.withHandler {
      let old = fixture.request(1)
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      fixture.announce(fixture.request(2), old)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(deny)
      await fixture.panel.until(challenges: 3)
    }
    let asked = fixture.panel.shown.drop { $0 != .confirmationWanted }
    #expect(asked.starts(with: [.confirmationWanted, .anotherRequest, .confirmationWanted, .talkingToServer]))
    // The end of the second request was shown, so the next request is not mistaken for it.
    #expect(fixture.panel.shown.count { $0 == .anotherRequest } == 1)
  }

  @Test("The next request after one that expired or was withdrawn is shown as another one", arguments: [true, false])
  func successorIsAnnounced(expires: Bool) async throws {
    fixture.announceElsewhere(fixture.request(2, of: fixture.otherServer, lives: .seconds(600)))
    fixture.announce(fixture.request(1, lives: .seconds(20)))
    try await fixture.withHandler {
      await fixture.panel.until(challenges: 1)
      if expires { fixture.clock.advance(by: .seconds(20)) } else { fixture.announce() }
      await fixture.pass { fixture.panel.prompts.count == 2 }
    }
    #expect(fixture.panel.shown.suffix(3) == [.anotherRequest, .confirmationWanted, .disconnected])
  }

  @Test("A change is shown also when the accounts are reloaded in between") func changeAcrossHandlers()
    async throws
  {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
    }
    fixture.inbox.forget(fixture.server.id)
    try await fixture.withHandler {
      fixture.announce(fixture.request(2))
      await fixture.panel.until(challenges: 2)
    }
    #expect(fixture.panel.shown.suffix(3) == [.anotherRequest, .confirmationWanted, .disconnected])
  }

  @Test("A request that was preempted once stays until it ends") func preemptedOnce() async throws {
    try await fixture.withHandler {
      let old = fixture.request(1)
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      fixture.announce(fixture.request(2), old)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(deny)
      await fixture.panel.until(challenges: 3)
      fixture.announce(fixture.request(3), old)
      // It is opened, so it could replace the request.
      await HandlerFixture.turn { fixture.stateStore.audit.last?.transaction == HandlerFixture.transaction(3) }
      for _ in 0..<1000 { await Task.yield() }
      #expect(fixture.panel.prompts.count == 3)
      fixture.panel.perform(accept)
      await fixture.panel.until(challenges: 4)
    }
    #expect(delivered == [2, 1].map(HandlerFixture.transaction))
  }

  /// Fails if a request that the user is busy with is replaced between two touches.
  @Test("A request that the user has touched stays until it ends") func touchedRequestStays() async throws {
    try await fixture.withHandler {
      let old = fixture.request(1)
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.touched)
      fixture.panel.perform(.unavailable("settle"))
      await HandlerFixture.turn { fixture.stateStore.audit.contains { $0.kind == .panelUnavailable } }
      fixture.announce(fixture.request(2), old)
      await HandlerFixture.turn { fixture.stateStore.audit.last?.transaction == HandlerFixture.transaction(2) }
      #expect(fixture.panel.prompts.count == 1)
      fixture.panel.perform(.released)
      fixture.panel.perform(.unavailable("settle again"))
      await HandlerFixture.turn { fixture.stateStore.audit.last?.detail == "settle again" }
      for _ in 0..<1000 { await Task.yield() }
      #expect(fixture.panel.prompts.count == 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(challenges: 2)
    }
    #expect(delivered == [HandlerFixture.transaction(1)])
  }

  @Test("A stuck button does not keep newer requests away") func stuckButtonKeepsNothing() async throws {
    try await fixture.withHandler {
      let old = fixture.request(1)
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      for event in [PanelEvent.touched, .stuck, .released] { fixture.panel.perform(event) }
      await HandlerFixture.turn { fixture.stateStore.audit.contains { $0.kind == .buttonStuck } }
      fixture.announce(fixture.request(2), old)
      await fixture.panel.until(challenges: 2)
    }
    #expect(fixture.panel.shown.contains(.anotherRequest))
  }

  @Test("A request that expires while another one is touched is in the log") func expiryElsewhere() async throws {
    try await fixture.withHandler {
      let old = fixture.request(1, lives: .seconds(20))
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      // Its server's clock is slightly ahead: the request leaves the list before it expires here. The third is never
      // opened.
      let newer = fixture.request(2, lives: .seconds(600))
      fixture.announce(newer, fixture.request(3, lives: .seconds(20)), old)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.touched)
      fixture.clock.advance(by: .seconds(19))
      fixture.announce(newer)
      fixture.clock.advance(by: .seconds(1))
      fixture.panel.perform(accept)
      await HandlerFixture.turn { !outcomes(1).isEmpty && !outcomes(2).isEmpty }
    }
    #expect(outcomes(1) == ["expired"])
    #expect(outcomes(2) == ["approved, receipt receipt-1"])
  }

  @Test("Requests that expire before they are shown are counted in the log") func expiredUnasked() async throws {
    try await fixture.withHandler {
      let (one, two) = (fixture.request(2, lives: .seconds(600)), fixture.request(1, lives: .seconds(20)))
      fixture.announce(one, two)
      await fixture.panel.until(challenges: 1)
      fixture.clock.advance(by: .seconds(20))
      fixture.panel.perform(accept)
      await HandlerFixture.turn { fixture.events.all.contains(.expiredUnannounced(fixture.server.id, 1)) }
    }
  }

  @Test("The panel knows how many requests are open") func openRequests() async throws {
    try await fixture.withHandler {
      let old = fixture.request(1, lives: .seconds(600))
      fixture.announce(old)
      await fixture.panel.until(challenges: 1)
      #expect(fixture.panel.openRequests == [1])
      fixture.announce(fixture.request(2, lives: .seconds(20)), old)
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.openRequests == [1, 2])
      fixture.panel.perform(deny)
      await fixture.panel.until(challenges: 3)
      #expect(fixture.panel.openRequests.last == 1)
    }
  }

  @Test("A change between a panel task and a request is shown") func tasksAreAnnounced() async throws {
    fixture.server.set(challenge: .pin(PINChallenge(length: 4, counts: FailureCounts(max: 3, previous: 0))))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      let panelTask = Task {
        try await fixture.panelTasks.perform { panel in
          try await PanelDialog(panel, in: fixture.environment).currentPIN(length: 4)
        }
      }
      await fixture.panel.until(challenges: 2)
      panelTask.cancel()
      await fixture.pass { fixture.panel.prompts.count == 3 }
    }
    let asked = fixture.panel.shown.filter { $0 == .pinWanted || $0 == .anotherRequest }
    #expect(asked == [.pinWanted, .anotherRequest, .pinWanted, .anotherRequest, .pinWanted])
  }

  @Test("A prompt that the panel ends by itself is armed again, and the handler continues") func promptEnds()
    async throws
  {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.breakPrompt()
      await fixture.pass { fixture.panel.prompts.count == 2 }
      fixture.panel.perform(accept)
      await HandlerFixture.turn { !outcomes(1).isEmpty }
    }
    #expect(outcomes(1) == ["approved, receipt receipt-1"])
  }

  @Test("The inbox knows the request on the panel while it is shown") func shownIsKnown() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      #expect(fixture.inbox.panel.shown.request?.pending.transaction == HandlerFixture.transaction(1))
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
      #expect(fixture.inbox.panel.shown.request == nil)
    }
  }
}
