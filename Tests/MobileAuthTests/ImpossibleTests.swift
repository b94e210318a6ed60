// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// A request that requires an action which this token does not support.
@Suite(.timeLimit(.minutes(5))) struct ImpossibleTests {
  private static let typed = PanelEvent.entered(PIN(digits: SecretBytes(copying: Array("13579".utf8))))

  @Test(arguments: [accept, Self.typed], [true, false])
  func nothingAcceptsIt(event: PanelEvent, canType: Bool) async throws {
    let world = World(canType: canType)
    world.server.set(challenge: .impossible)
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(event)
      world.panel.perform(deny)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.prompts == [.denial] && world.panel.shown.contains(.pinWanted))
    #expect(world.server.delivered.map(\.decision) == [.deny(.declined)])
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["denied (declined), receipt receipt-1"])
  }

  @Test(arguments: [(deny, DenialReason.declined), (notMe, .notMe)])
  func itIsDenied(event: PanelEvent, reason: DenialReason) async throws {
    let world = World()
    world.server.set(challenge: .impossible)
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(event)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.server.delivered.map(\.decision) == [.deny(reason)])
  }
}
