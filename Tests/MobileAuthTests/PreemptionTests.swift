// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Replacement of the request on the panel by another one.
@Suite(.timeLimit(.minutes(5))) struct PreemptionTests {
  private let world = World()

  private func outcomes(_ number: Int) -> [String] { world.custody.outcomes(of: World.transaction(number)) }

  private var delivered: [TransactionID] { world.server.delivered.map(\.request.pending.transaction) }

  @Test("A change to another request is shown before its prompt") func changeIsAnnounced() async throws {
    try await world.withHandler {
      let old = world.request(1)
      world.announce(old)
      await world.panel.until(challenges: 1)
      world.announce(world.request(2), old)
      await world.panel.until(challenges: 2)
      world.panel.perform(deny)
      await world.panel.until(challenges: 3)
    }
    let asked = world.panel.shown.drop { $0 != .confirmationWanted }
    #expect(asked.starts(with: [.confirmationWanted, .anotherRequest, .confirmationWanted, .talkingToServer]))
    // The end of the second request was shown, so the next request is not mistaken for it.
    #expect(world.panel.shown.count { $0 == .anotherRequest } == 1)
  }

  @Test("The next request after one that expired or was withdrawn is shown as another one", arguments: [true, false])
  func successorIsAnnounced(expires: Bool) async throws {
    try await world.withHandler {
      world.announceElsewhere(world.request(2, of: world.otherServer, lives: .seconds(600)))
      world.announce(world.request(1, lives: .seconds(20)))
      await world.pass { world.panel.prompts.count == 1 }
      if expires { world.timekeeper.advance(by: .seconds(20)) } else { world.announce() }
      await world.pass { world.panel.prompts.count == 2 }
    }
    #expect(world.panel.shown.suffix(2) == [.anotherRequest, .confirmationWanted])
  }

  @Test("A change is shown also when the accounts are reloaded in between") func changeAcrossHandlers()
    async throws
  {
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
    }
    world.inbox.forget(world.server.id)
    try await world.withHandler {
      world.announce(world.request(2))
      await world.panel.until(challenges: 2)
    }
    #expect(world.panel.shown.suffix(2) == [.anotherRequest, .confirmationWanted])
  }

  @Test("A request that was preempted once stays until it ends") func preemptedOnce() async throws {
    try await world.withHandler {
      let old = world.request(1)
      world.announce(old)
      await world.panel.until(challenges: 1)
      world.announce(world.request(2), old)
      await world.panel.until(challenges: 2)
      world.panel.perform(deny)
      await world.panel.until(challenges: 3)
      world.announce(world.request(3), old)
      // It is opened, so it could replace the request.
      #expect(await World.turn { world.custody.audit.last?.transaction == World.transaction(3) })
      for _ in 0..<1000 { await Task.yield() }
      #expect(world.panel.prompts.count == 3)
      world.panel.perform(accept)
      await world.panel.until(challenges: 4)
    }
    #expect(delivered == [2, 1].map(World.transaction))
  }

  @Test("A newer request that a touch delayed is shown when the touch ends") func touchEnds() async throws {
    try await world.withHandler {
      let old = world.request(1)
      world.announce(old)
      await world.panel.until(challenges: 1)
      world.panel.perform(.touched)
      world.panel.perform(.unavailable("settle"))
      #expect(await World.turn { world.custody.audit.contains { $0.kind == .panelUnavailable } })
      world.announce(world.request(2), old)
      #expect(await World.turn { world.custody.audit.last?.transaction == World.transaction(2) })
      #expect(world.panel.prompts.count == 1)
      world.panel.perform(.released)
      await world.panel.until(challenges: 2)
    }
    #expect(world.panel.shown.contains(.anotherRequest))
  }

  @Test("A request that expires while another one is touched is in the log") func expiryElsewhere() async throws {
    try await world.withHandler {
      let old = world.request(1, lives: .seconds(20))
      world.announce(old)
      await world.panel.until(challenges: 1)
      // Its server's clock is slightly ahead: the request leaves the list before it expires here. The third is never
      // opened.
      let newer = world.request(2, lives: .seconds(600))
      world.announce(newer, world.request(3, lives: .seconds(20)), old)
      await world.panel.until(challenges: 2)
      world.panel.perform(.touched)
      world.timekeeper.advance(by: .seconds(19))
      world.announce(newer)
      world.timekeeper.advance(by: .seconds(1))
      world.panel.perform(accept)
      #expect(await World.turn { !outcomes(1).isEmpty })
    }
    #expect(outcomes(1) == ["expired"])
    #expect(outcomes(2) == ["approved, receipt receipt-1"])
  }

  @Test("Requests that expire before they are shown are counted in the log") func expiredUnasked() async throws {
    try await world.withHandler {
      let (one, two) = (world.request(2, lives: .seconds(600)), world.request(1, lives: .seconds(20)))
      world.announce(one, two)
      await world.panel.until(challenges: 1)
      world.timekeeper.advance(by: .seconds(20))
      world.panel.perform(accept)
      #expect(await World.turn { world.recorder.events.contains(.expiredUnannounced(1)) })
    }
  }

  @Test("The panel knows how many requests are open") func openRequests() async throws {
    try await world.withHandler {
      let old = world.request(1, lives: .seconds(600))
      world.announce(old)
      await world.panel.until(challenges: 1)
      #expect(world.panel.openRequests == [1])
      world.announce(world.request(2, lives: .seconds(20)), old)
      await world.panel.until(challenges: 2)
      #expect(world.panel.openRequests == [1, 2])
      world.panel.perform(deny)
      await world.panel.until(challenges: 3)
      #expect(world.panel.openRequests.last == 1)
    }
  }

  @Test("A change between a panel task and a request is shown") func tasksAreAnnounced() async throws {
    world.server.set(challenge: .pin(PINChallenge(length: 4, counts: FailureCounts(max: 3, previous: 0))))
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(600)))
      await world.panel.until(challenges: 1)
      let errand = Task {
        try await world.errands.perform { panel in
          try await PanelDialogue(panel, timekeeper: world.timekeeper).currentPIN(length: 4)
        }
      }
      await world.panel.until(challenges: 2)
      errand.cancel()
      await world.pass { world.panel.prompts.count == 3 }
    }
    let asked = world.panel.shown.filter { $0 == .pinWanted || $0 == .anotherRequest }
    #expect(asked == [.pinWanted, .anotherRequest, .pinWanted, .anotherRequest, .pinWanted])
  }

  @Test("A prompt that the panel ends by itself is armed again, and the handler continues") func promptEnds()
    async throws
  {
    try await world.withHandler {
      world.announce(world.request(1, lives: .seconds(600)))
      await world.panel.until(challenges: 1)
      world.panel.breakPrompt()
      await world.pass { world.panel.prompts.count == 2 }
      world.panel.perform(accept)
      #expect(await World.turn { !outcomes(1).isEmpty })
    }
    #expect(outcomes(1) == ["approved, receipt receipt-1"])
  }

  @Test("The inbox knows the request on the panel while it is shown") func shownIsKnown() async throws {
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      #expect(world.inbox.shown == World.transaction(1))
      world.panel.perform(deny)
      await world.panel.until(showing: .idle(pending: 0))
      #expect(world.inbox.shown == nil)
    }
  }
}
