// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Requests that the user chooses, with a short press or by name.
@Suite(.timeLimit(.minutes(5))) struct PanelChoiceTests {
  private let fixture = HandlerFixture()

  private var shown: TransactionID? { fixture.inbox.panel.shown.request?.pending.transaction }

  private func shortPress() {
    for event in [PanelEvent.touched, .shortPress, .released] { fixture.panel.perform(event) }
  }

  /// Waits until every event so far was handled.
  private func settle(_ mark: String) async {
    fixture.panel.perform(.unavailable(mark))
    await HandlerFixture.turn { fixture.stateStore.audit.contains { $0.detail == mark } }
    for _ in 0..<1000 { await Task.yield() }
  }

  private func announceThree() -> [PendingMobileAuthRequest] {
    let requests = [3, 2, 1].map { fixture.request($0, lives: .seconds(600)) }
    fixture.announce(requests, by: fixture.server)
    return requests
  }

  @Test("Each short press shows the next request, and after the last one the first one") func shortPresses()
    async throws
  {
    try await fixture.withHandler {
      _ = announceThree()
      for (number, expected) in [3, 2, 1, 3].enumerated() {
        await fixture.panel.until(challenges: number + 1)
        await HandlerFixture.turn { shown == HandlerFixture.transaction(expected) }
        if number < 3 { shortPress() }
      }
      fixture.panel.perform(accept)
      await fixture.panel.until(challenges: 5)
    }
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(3)])
    // Each change is announced; the outcome of the last one was shown.
    #expect(fixture.panel.shown.count { $0 == .anotherRequest } == 3)
  }

  @Test("A short press without another request changes nothing") func onlyRequest() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      shortPress()
      await settle("pressed")
      #expect(fixture.panel.prompts.count == 1)
      fixture.panel.perform(deny)
      await HandlerFixture.turn { fixture.server.delivered.count == 1 }
    }
  }

  @Test("A chosen request is not replaced by a newer one, and comes first after it was interrupted")
  func chosenRequestStays() async throws {
    try await fixture.withHandler {
      let old = announceThree()
      await fixture.panel.until(challenges: 1)
      fixture.inbox.choose(HandlerFixture.transaction(1))
      await fixture.panel.until(challenges: 2)
      await HandlerFixture.turn { shown == HandlerFixture.transaction(1) }
      fixture.announce([fixture.request(4, lives: .seconds(600))] + old, by: fixture.server)
      await settle("announced")
      #expect(fixture.panel.prompts.count == 2)
      let task = Task { try await fixture.panelTasks.perform { await $0.show(.confirmed) } }
      try await task.finished()
      await fixture.panel.until(challenges: 3)
      await HandlerFixture.turn { shown == HandlerFixture.transaction(1) }
    }
  }

  @Test("A request chosen by name waits for the end of a touch, and then replaces also a touched request")
  func chosenDuringTouch() async throws {
    try await fixture.withHandler {
      _ = announceThree()
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.touched)
      await settle("touched")
      fixture.inbox.choose(HandlerFixture.transaction(1))
      await settle("chosen")
      #expect(fixture.panel.prompts.count == 1)
      fixture.panel.perform(.released)
      await fixture.panel.until(challenges: 2)
      await HandlerFixture.turn { shown == HandlerFixture.transaction(1) }
    }
    #expect(fixture.panel.shown.contains(.anotherRequest))
  }

  @Test("The request stays while the request chosen by name cannot be opened") func chosenCannotBeOpened() async throws
  {
    fixture.server.hang(opening: HandlerFixture.transaction(1))
    try await fixture.withHandler {
      _ = announceThree()
      await fixture.panel.until(challenges: 1)
      fixture.inbox.choose(HandlerFixture.transaction(1))
      await settle("chosen")
      #expect(fixture.panel.prompts.count == 1)
      fixture.panel.perform(accept)
      await HandlerFixture.turn { fixture.server.delivered.count == 1 }
    }
    #expect(fixture.server.delivered.map(\.request.pending.transaction) == [HandlerFixture.transaction(3)])
  }

  /// Fails if the LED shows nothing for ever after a short press.
  @Test("A short press to a request that cannot be opened returns to one that can") func nextCannotBeOpened()
    async throws
  {
    fixture.server.hang(opening: HandlerFixture.transaction(2))
    try await fixture.withHandler {
      let other = fixture.request(7, of: fixture.otherServer, lives: .seconds(600))
      fixture.announceElsewhere(other)
      await fixture.panel.until(challenges: 1)
      fixture.announce([fixture.request(2, lives: .seconds(600))], by: fixture.server)
      await settle("announced")
      shortPress()
      await fixture.pass { fixture.panel.prompts.count == 2 }
      await HandlerFixture.turn { shown == other.transaction }
    }
  }
}
