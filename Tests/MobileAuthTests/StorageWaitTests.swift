// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

/// What the user and the server wait for: an SD card takes 10 to 100 ms for each durable change.
@Suite("Waits for storage in the handling loop", .timeLimit(.minutes(1))) struct StorageWaitTests {
  private let fixture = HandlerFixture()

  /// - Parameter writes: the durable changes that fail, counted from 1.
  private func approve(failing writes: Int..., then check: () -> Void = {}) async throws {
    for write in writes { fixture.stateStore.fail(write: write, with: .io(call: "write", reason: "disk full")) }
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .seeLog)
      check()
    }
  }

  /// Fails if anything is written before the LED shows the request.
  @Test("The first durable change comes after the LED shows the request") func showsBeforeWriting() async throws {
    try await approve(failing: 1)
    #expect(fixture.panel.shown.contains(.confirmationWanted))
    #expect(fixture.server.delivered.isEmpty)
    #expect(fixture.stateStore.durableAudit.map(\.kind).prefix(2) == [.announced, .opened])
  }

  /// Fails if the loop writes what the opening has recorded so far: the LED would wait for the storage.
  @Test("Nothing is written while a request is being opened, for a second at most") func openingFirst() async throws {
    fixture.server.hang("open")
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await HandlerFixture.turn { fixture.server.calls(of: "open") == 1 }
      for _ in 0..<20 {
        fixture.inbox.changes.raise()
        for _ in 0..<20 { await Task.yield() }
      }
      #expect(fixture.stateStore.writes == 0)
      fixture.clock.advance(by: .seconds(1))
      await HandlerFixture.turn { fixture.stateStore.writes == 1 }
      #expect(fixture.stateStore.durableAudit.map(\.kind) == [.announced])
    }
  }

  /// Fails if only the first request within 10 s is shown without waiting for storage.
  @Test("A second request is shown without a wait for storage, too") func secondRequest() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
      await HandlerFixture.turn { fixture.stateStore.durableAudit.last?.kind == .settled }
      let writes = fixture.stateStore.writes
      fixture.server.hang("open")
      fixture.announce(fixture.request(2))
      await HandlerFixture.turn { fixture.server.calls(of: "open") == 2 }
      for _ in 0..<20 {
        fixture.inbox.changes.raise()
        for _ in 0..<20 { await Task.yield() }
      }
      #expect(fixture.stateStore.writes == writes)
      fixture.clock.advance(by: .seconds(1))
      await HandlerFixture.turn { fixture.stateStore.writes == writes + 1 }
    }
  }

  /// Fails if more than one durable change precedes the sending of the answer.
  @Test("The decision is the only durable change before the answer is sent") func decisionOnly() async throws {
    try await approve(failing: 2, 3)
    #expect(fixture.server.delivered.count == 1)
  }

  @Test("An answer that is made while the decision is stored is sent as it was made") func sealsBeside() async throws {
    fixture.server.sealsWithoutDeciding = true
    try await fixture.handlesRequest { fixture.panel.perform(accept) }
    #expect(fixture.server.delivered.map { $0.body.isEmpty } == [false])
    #expect(try fixture.stateStore.unresolvedIntents().isEmpty)
  }

  /// Fails if the end of an answer that could not be made leaves the question of its outcome.
  @Test("A decision whose answer cannot be made ends, and is not sent") func cannotBeMade() async throws {
    fixture.server.sealsWithoutDeciding = true
    fixture.server.fail("seal", .refused("no key"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .seeLog)
      await HandlerFixture.turn { fixture.stateStore.durableAudit.last?.kind == .settled }
    }
    #expect(fixture.server.delivered.isEmpty)
    #expect(try fixture.stateStore.unresolvedIntents().isEmpty)
    #expect(fixture.stateStore.durableAudit.map(\.kind) == [.announced, .opened, .decided, .settled])
  }

  @Test("An answer with a PIN is made before the decision is stored") func sealsPINFirst() async throws {
    fixture.server.sealsWithoutDeciding = true
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    fixture.server.fail("seal", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("12345"))
      await fixture.panel.until(shown: .pinWrong(remaining: 2))
    }
    #expect(!fixture.stateStore.durableAudit.contains { $0.kind == .decided })
  }

  /// Fails if the LED waits until the end of the request is written.
  @Test("The LED does not wait for the settled entry") func confirmsBeforeSettling() async throws {
    try await approve(failing: 2, 3) {
      #expect(fixture.panel.shown.contains(.confirmed))
      #expect(fixture.stateStore.durableIntents.count == 1, "the server is queried after a crash")
    }
  }

  @Test("An approval makes two durable changes") func twoChanges() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.stateStore.writes == 2)
    #expect(fixture.stateStore.durableAudit.map(\.kind) == [.announced, .opened, .decided, .settled])
  }

  /// Fails if the entries of a request without an answer are only in memory.
  @Test("A request that is not answered soon is written, but not during a touch") func unanswered() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(90)))
      await fixture.panel.until(challenges: 1)
      #expect(fixture.stateStore.writes == 0)
      fixture.panel.perform(.touched)
      await fixture.pass { fixture.clock.now.uptime >= .seconds(20) }
      #expect(fixture.stateStore.writes == 0)
      fixture.panel.perform(.released)
      await fixture.pass { fixture.stateStore.writes == 1 }
      #expect(fixture.stateStore.durableAudit.map(\.kind) == [.announced, .opened])
    }
  }

  /// Fails if a stopped service forgets the end of a request that its user saw.
  @Test("What is not written is written when the service stops") func stopping() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
    }
    #expect(fixture.stateStore.durableAudit.map(\.kind) == [.announced, .opened])
  }
}
