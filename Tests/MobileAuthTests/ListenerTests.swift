// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

@Suite(.timeLimit(.minutes(5))) struct ListenerTests {
  private func listener(_ world: World) -> Listener {
    Listener(
      to: world.server, inbox: world.inbox, custody: world.custody, timekeeper: world.timekeeper, random: { 0.5 },
      report: { [recorder = world.recorder] in recorder.add($0) })
  }

  private func until(file: String = #fileID, line: Int = #line, _ condition: () -> Bool) async throws {
    try await eventually(file: file, line: line) { condition() }
  }

  @Test func theListIsReadOnConnectOnHintsAndNowAndThen() async throws {
    let world = World()
    world.server.set(list: [world.request(1)])
    let running = Task { try await listener(world).run() }
    try await until { world.inbox.contains(World.transaction(1)) }
    world.server.set(list: [world.request(2)])
    world.server.hint(.pendingChanged)
    try await until { world.inbox.contains(World.transaction(2)) }
    #expect(!world.inbox.contains(World.transaction(1)))
    // A lost hint delays a request by ten minutes but does not lose it.
    world.server.set(list: [world.request(3, lives: .seconds(900))])
    await world.timekeeper.untilAsleep()
    world.timekeeper.advance(by: .seconds(600))
    try await until { world.inbox.contains(World.transaction(3)) }
    running.cancel()
    _ = try? await running.value
  }

  @Test func aServerDownForHoursIsTriedWithGrowingPauses() async throws {
    let world = World()
    world.server.fail("validate", .unreachable("a"), .unreachable("b"), .unreachable("c"), .unreachable("d"))
    let running = Task { try await listener(world).run() }
    for (attempt, pause) in [750, 1500, 3000, 6000].enumerated() {
      await world.timekeeper.untilAsleep()
      #expect(world.server.calls(of: "validate") == attempt + 1)
      #expect(world.timekeeper.untilNextWakes == .milliseconds(pause))
      world.timekeeper.advance(by: .milliseconds(pause))
      try await until { world.server.calls(of: "validate") == attempt + 2 }
    }
    try await until { world.inbox.connections[world.server.id] == .connected }
    running.cancel()
    _ = try? await running.value
  }

  @Test func aDeregisteredDeviceIsWipedAndTheListenerEnds() async throws {
    let world = World()
    world.server.fail("validate", .deviceDeregistered)
    #expect(try await listener(world).run() == .serverWiped)
    #expect(world.custody.wipedServers == [world.server.id])
    #expect(world.recorder.events.contains(.rosterChanged))
  }

  @Test(
    "A request missing from the list probably expired if its time limit is near; otherwise its end is unknown",
    arguments: [(0, false), (44, false), (45, true), (60, true), (90, true)])
  func unexplainedEndings(secondsAfter: Int, isExpiry: Bool) throws {
    let world = World()
    let request = world.request(1, lives: .seconds(60))
    let ending = request.unexplainedEnding(at: world.timekeeper.now + .seconds(secondsAfter))
    #expect(ending.contains("probably expired") == isExpiry)
    #expect(ending.contains("how is not known") == !isExpiry)
  }

  @Test func removedAndDisenrolledAccountsAreCleanedUpOthersUntouched() async throws {
    let world = World()
    world.server.set(
      validation: Validation(removedAccounts: [AccountID("A")], disenrolledAccounts: [AccountID("B")]))
    let running = Task { try await listener(world).run() }
    try await until { world.recorder.events.contains(.rosterChanged) }
    #expect(world.custody.wipedAccounts == [AccountID("A")])
    #expect(world.custody.droppedKeys == [AccountID("B")])
    running.cancel()
    _ = try? await running.value
  }

  @Test(arguments: [TokenServerFault.outdated("old"), .configurationInvalid("bad"), .clockWrong])
  func whatOnlyAPersonCanMendStopsTheListener(fault: TokenServerFault) async throws {
    let world = World()
    world.server.fail("validate", fault)
    #expect(try await listener(world).run() == .stopped(fault))
    #expect(world.inbox.connections[world.server.id] == .stopped)
  }

  /// The connection is not restarted, and requests delivered another way are found at once.
  @Test func aChannelThatIsDownShowsAndHeals() async throws {
    let world = World()
    let running = Task { try await listener(world).run() }
    try await until { world.inbox.connections[world.server.id] == .connected }
    world.server.set(list: [world.request(1)])
    world.server.hint(.disconnected("no broker"))
    try await until { world.recorder.events.contains(.disconnected(world.server.id, "no broker")) }
    #expect(world.inbox.connections[world.server.id] == .disconnected)
    #expect(world.inbox.contains(World.transaction(1)))
    world.server.set(list: [world.request(2)])
    world.server.hint(.pendingChanged)
    try await until { world.inbox.contains(World.transaction(2)) }
    #expect(world.inbox.connections[world.server.id] == .disconnected)
    world.server.hint(.connected)
    try await until { world.inbox.connections[world.server.id] == .connected }
    #expect(world.server.calls(of: "validate") == 1)
    running.cancel()
    _ = try? await running.value
  }

  @Test func aBrokenStreamShowsAndHeals() async throws {
    let world = World()
    let running = Task { try await listener(world).run() }
    try await until { world.inbox.connections[world.server.id] == .connected }
    world.server.breakStream(.unreachable("cable"))
    #expect(await World.turn { world.recorder.events.contains(.disconnected(world.server.id, "cable (9001)")) })
    #expect(world.inbox.connections[world.server.id] == .disconnected)
    #expect(await World.turn { world.timekeeper.untilNextWakes == .milliseconds(750) })
    world.timekeeper.advance(by: .milliseconds(750))
    #expect(await World.turn { world.inbox.connections[world.server.id] == .connected })
    running.cancel()
    _ = try? await running.value
  }
}
