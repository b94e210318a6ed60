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
    fixture.server.set(challenge: .impossible)
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
    fixture.server.set(challenge: .impossible)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.map(\.decision) == [.deny(reason)])
  }
}
