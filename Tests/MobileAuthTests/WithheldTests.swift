// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// Requests of accounts that are locked at this token.
@Suite(.timeLimit(.minutes(5))) struct WithheldTests {
  private static let locked = Withholding(lock: "locked by hand", contents: "push")

  @Test func nobodyIsAskedUntilTheAccountIsUnlocked() async throws {
    let world = World()
    try await world.withHandler {
      var newest = world.request(1, sentAt: 2000)
      newest.withheld = Self.locked
      let other = world.request(2, sentAt: 1000)
      world.announce(newest, other)
      await world.panel.until(challenges: 1)
      world.panel.perform(deny)
      // No request waits for the user.
      await world.panel.until(showing: .idle(pending: 0))
      #expect(world.server.delivered.map(\.request.pending.transaction) == [World.transaction(2)])
      #expect(world.inbox.requests.map(\.withheld) == [Self.locked])
      newest.withheld = nil
      world.announce(newest)
      await world.panel.until(challenges: 2)
      world.panel.perform(accept)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["approved, receipt receipt-1"])
  }

  @Test func expiresWhileTheAccountIsLocked() async throws {
    let world = World()
    try await world.withHandler {
      var request = world.request(1, lives: .seconds(10))
      request.withheld = Self.locked
      world.announce(request)
      // The announcement wakes the handler, which then sleeps until that time.
      try await eventually { world.timekeeper.untilNextWakes == .seconds(10) }
      // The accounts are reloaded in between.
      world.inbox.forget(world.server.id)
      world.announce(request)
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .seconds(10))
      try await eventually { !world.custody.outcomes(of: World.transaction(1)).isEmpty }
    }
    #expect(world.custody.audit.map(\.kind) == [.settled])
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["expired"])
    #expect(world.panel.prompts.isEmpty && world.server.calls(of: "open") == 0)
  }

  @Test(arguments: ["open", "seal"]) func aLockThatIsPutOnMeanwhileLeavesItPending(step: String) async throws {
    let world = World()
    world.server.fail(step, .locked("locked by hand"))
    try await world.withHandler {
      world.announce(world.request(1))
      if step == "seal" {
        await world.panel.until(challenges: 1)
        world.panel.perform(accept)
      }
      try await eventually { world.panel.shown.contains(.misconfigured) }
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.custody.audit.last?.kind == .refused)
    #expect(world.custody.audit.last?.detail == "the account is locked by hand")
    #expect(world.custody.outcomes(of: World.transaction(1)).isEmpty && world.server.delivered.isEmpty)
    #expect(world.inbox.requests.map(\.transaction) == [World.transaction(1)])
    #expect(world.server.calls(of: "open") == 1 && world.server.calls(of: "ended") == 0)
  }

  @Test func theLogSaysOnceWhoTried() async throws {
    let world = World()
    let listener = Listener(
      to: world.server, inbox: world.inbox, custody: world.custody, timekeeper: world.timekeeper, random: { 0.5 },
      report: { [recorder = world.recorder] in recorder.add($0) })
    var (first, second) = (world.request(1, sentAt: 1000), world.request(2, sentAt: 2000))
    first.withheld = Withholding(lock: "locked by hand", contents: "push, says \"hi\"")
    second.withheld = Self.locked
    world.server.set(list: [first])
    let running = Task { try await listener.run() }
    try await eventually { !world.custody.audit.isEmpty }
    // The accounts are reloaded.
    world.inbox.forget(world.server.id)
    world.server.set(list: [second, first])
    world.server.hint(.pendingChanged)
    try await eventually { world.custody.audit.last?.transaction == World.transaction(2) }
    running.cancel()
    _ = try? await running.value
    #expect(world.custody.audit.map(\.kind) == [.opened, .opened])
    #expect(
      world.custody.audit.map(\.detail) == [
        "account locked: push, says \"hi\"; it is locked by hand", "account locked: push; it is locked by hand",
      ])
    #expect(world.recorder.events.contains(.audited(world.custody.audit[0])))
  }
}
