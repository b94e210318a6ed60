// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Secrets
import Testing

@testable import MobileAuth

@Suite(.timeLimit(.minutes(5))) struct ListenerTests {
  private func listener(_ fixture: HandlerFixture) -> RequestListener {
    RequestListener(
      to: fixture.server, inbox: fixture.inbox, stateStore: fixture.stateStore, in: fixture.environment)
  }

  @Test("The list is read on connect on hints and now and then") func theListIsReadOnConnectOnHintsAndNowAndThen()
    async throws
  {
    let fixture = HandlerFixture()
    fixture.server.set(list: [fixture.request(1)])
    let running = Task { try await listener(fixture).run() }
    try await eventually("request 1 is listed") { fixture.inbox.pending.contains(HandlerFixture.transaction(1)) }
    fixture.server.set(list: [fixture.request(2)])
    fixture.server.hint(.pendingChanged)
    try await eventually("request 2 is listed") { fixture.inbox.pending.contains(HandlerFixture.transaction(2)) }
    #expect(!fixture.inbox.pending.contains(HandlerFixture.transaction(1)))
    // A lost hint delays a request by ten minutes but does not lose it.
    fixture.server.set(list: [fixture.request(3, lives: .seconds(900))])
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: .seconds(600))
    try await eventually("request 3 is listed") { fixture.inbox.pending.contains(HandlerFixture.transaction(3)) }
    running.cancel()
    _ = try? await running.finished()
  }

  /// The hint is normally about the end of that answer's request, and the LED waits for the same processor.
  @Test("A hint during an answer to its server waits for a moment") func hintDuringAnAnswer() async throws {
    let fixture = HandlerFixture()
    let running = Task { try await listener(fixture).run() }
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    fixture.inbox.panel.sentAnswer.begin(to: fixture.server.id)
    fixture.server.hint(.pendingChanged)
    await fixture.clock.untilAsleep(2)
    #expect(fixture.server.calls(of: "pendingRequests") == 1)
    fixture.clock.advance(by: RequestListener.answerPause)
    try await eventually("a second reading of the list") { fixture.server.calls(of: "pendingRequests") == 2 }
    running.cancel()
    _ = try? await running.finished()
  }

  /// A hostile server, or a client that may write at the broker, can send hints without end.
  @Test("A thousand hints cause few list reads, and do not hide a revocation") func manyHints() async throws {
    let fixture = HandlerFixture()
    let running = Task { try await listener(fixture).run() }
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    for number in 1...1000 {
      fixture.server.hint(number == 1 ? .revoked : .pendingChanged)
      if number % 100 == 0 { await fixture.clock.untilAsleep() }
    }
    try await eventually("another validation, and another reading of the list") {
      fixture.server.calls(of: "validate") == 2 && fixture.server.calls(of: "pendingRequests") >= 2
    }
    #expect((2...10).contains(fixture.server.calls(of: "pendingRequests")))
    fixture.clock.advance(by: .seconds(1))
    await fixture.clock.untilAsleep()
    #expect((2...16).contains(fixture.server.calls(of: "pendingRequests")))
    running.cancel()
    _ = try? await running.finished()
  }

  /// An enrollment at a known server starts its listener again.
  @Test("A listener that is replaced reports no lost connection") func replacement() async throws {
    let fixture = HandlerFixture()
    for _ in 0..<2 {
      let running = Task { try await listener(fixture).run() }
      try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
      running.cancel()
      _ = try? await running.finished()
      fixture.inbox.connectivity.set(.disconnected, to: fixture.server.id)
    }
    #expect(fixture.server.calls(of: "pendingRequests") == 2)
    #expect(!fixture.events.all.contains { if case .disconnected = $0 { true } else { false } })
  }

  /// Fails if the end of a stream hides the hint before it: without its broker, a token would never read the list.
  @Test("A hint before the end of the stream is handled") func hintBeforeTheEnd() async throws {
    let fixture = HandlerFixture()
    let running = Task { try await listener(fixture).run() }
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    fixture.server.set(list: [fixture.request(1)])
    fixture.server.hint(.pendingChanged)
    fixture.server.breakStream(.unreachable("no broker"))
    try await eventually("request 1 is listed") { fixture.inbox.pending.contains(HandlerFixture.transaction(1)) }
    running.cancel()
    _ = try? await running.finished()
    let queue = HintQueue()
    queue.put(.pendingChanged)
    queue.end(by: TokenServerError.unreachable("end"))
    #expect(try await queue.next() == .pendingChanged)
    await #expect(throws: TokenServerError.unreachable("end")) { try await queue.next() }
  }

  @Test("Hints of the same kind wait once, in the order of the last one") func coalesced() async throws {
    let queue = HintQueue()
    for hint in [Hint.connected, .pendingChanged, .disconnected("a"), .revoked, .pendingChanged, .disconnected("b")] {
      queue.put(hint)
    }
    var taken: [Hint] = []
    for _ in 1...4 { taken.append(try await queue.next()) }
    #expect(taken == [.connected, .revoked, .pendingChanged, .disconnected("b")])
  }

  @Test("A server down for hours is tried with growing pauses") func aServerDownForHoursIsTriedWithGrowingPauses()
    async throws
  {
    let fixture = HandlerFixture()
    fixture.server.fail("validate", .unreachable("a"), .unreachable("b"), .unreachable("c"), .unreachable("d"))
    let running = Task { try await listener(fixture).run() }
    for (attempt, pause) in [750, 1500, 3000, 6000].enumerated() {
      await fixture.clock.untilAsleep()
      #expect(fixture.server.calls(of: "validate") == attempt + 1)
      #expect(fixture.clock.untilNextWakes == .milliseconds(pause))
      fixture.clock.advance(by: .milliseconds(pause))
      try await eventually("validation \(attempt + 2)") { fixture.server.calls(of: "validate") == attempt + 2 }
    }
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    running.cancel()
    _ = try? await running.finished()
  }

  @Test("While no server can be reached none counts as connected; one is tried when some may be reached again")
  func outage() async throws {
    let fixture = HandlerFixture()
    let connectivity = fixture.inbox.connectivity
    connectivity.set(.connected, to: fixture.otherServer.id)
    let running = Task { try await listener(fixture).run() }
    try await eventually("the server is connected") { connectivity[fixture.server.id] == .connected }
    connectivity.setOutage(.unreachable("gone"))
    #expect(connectivity.all == [fixture.server.id: .disconnected, fixture.otherServer.id: .disconnected])
    #expect(connectivity.faults[fixture.otherServer.id] == .unreachable("gone"))
    fixture.server.fail(
      "validate", .unreachable("a"), .unreachable("b"), .unreachable("c"), .rateLimited(retryAfter: nil))
    fixture.server.breakStream(.unreachable("ended"))
    for (attempt, pause) in [750, 1500, 3000].enumerated() {
      await HandlerFixture.turn { fixture.clock.untilNextWakes == .milliseconds(pause) }
      #expect(fixture.server.calls(of: "validate") == attempt + 1)
      fixture.clock.advance(by: .milliseconds(pause))
      try await eventually("validation \(attempt + 2)") { fixture.server.calls(of: "validate") == attempt + 2 }
    }
    await HandlerFixture.turn { fixture.clock.untilNextWakes == .milliseconds(6000) }
    connectivity.setOutage(nil)
    #expect(connectivity.all == [fixture.server.id: .disconnected, fixture.otherServer.id: .connected])
    try await eventually("validation 5") { fixture.server.calls(of: "validate") == 5 }
    // A server that asks for a pause gets it.
    await HandlerFixture.turn { fixture.clock.untilNextWakes == .milliseconds(12_000) }
    connectivity.setOutage(nil)
    fixture.clock.advance(by: .milliseconds(11_999))
    #expect(fixture.server.calls(of: "validate") == 5)
    fixture.clock.advance(by: .milliseconds(1))
    try await eventually("the server is connected") { connectivity[fixture.server.id] == .connected }
    running.cancel()
    _ = try? await running.finished()
  }

  @Test("A deregistered device is wiped and the listener ends") func aDeregisteredDeviceIsWipedAndTheListenerEnds()
    async throws
  {
    let fixture = HandlerFixture()
    fixture.server.fail("validate", .deviceDeregistered)
    try await listener(fixture).run()
    #expect(fixture.stateStore.wipedServers == [fixture.server.id])
    #expect(fixture.events.all.contains(.rosterChanged))
  }

  @Test(
    "A request missing from the list probably expired if its time limit is near; otherwise its end is unknown",
    arguments: [(0, false), (44, false), (45, true), (60, true), (90, true)])
  func unexplainedEndings(secondsAfter: Int, isExpiry: Bool) throws {
    let fixture = HandlerFixture()
    let request = fixture.request(1, lives: .seconds(60))
    let ending = request.unexplainedEnding(at: fixture.clock.now + .seconds(secondsAfter)).detail
    #expect(ending.contains("probably expired") == isExpiry)
    #expect(ending.contains("how is not known") == !isExpiry)
  }

  @Test("Removed and disenrolled accounts are cleaned up others untouched")
  func removedAndDisenrolledAccountsAreCleanedUpOthersUntouched() async throws {
    let fixture = HandlerFixture()
    fixture.server.set(
      validation: Validation(removedAccounts: [AccountID("A")], disenrolledAccounts: [AccountID("B")]))
    let running = Task { try await listener(fixture).run() }
    try await eventually("the roster has changed") { fixture.events.all.contains(.rosterChanged) }
    #expect(fixture.stateStore.wipedAccounts == [AccountID("A")])
    #expect(fixture.stateStore.droppedKeys == [AccountID("B")])
    running.cancel()
    _ = try? await running.finished()
  }

  /// Fails without the comparison of enrollments: the account is wiped although it was enrolled again.
  @Test(
    "What the server says about a former enrollment leaves the present one",
    arguments: [
      Validation(removedAccounts: [AccountID("A")]), Validation(disenrolledAccounts: [AccountID("A")]), nil,
    ])
  func formerEnrollment(validation: Validation?) async throws {
    let fixture = HandlerFixture()
    let registry = MemoryRegistry()
    let id = fixture.server.id
    try registry.put(
      TokenServerRecord(id: id, kind: "k", url: "https://s", secrets: SecretBytes(copying: [1])))
    try registry.put(
      AccountRecord(
        id: AccountID("A"), server: id, profile: "p", stage: .active, secrets: SecretBytes(copying: [1])), nil)
    if let validation {
      fixture.server.set(validation: validation)
    } else {
      fixture.server.fail("validate", .deviceDeregistered)
    }
    let listener = RequestListener(
      to: fixture.server, inbox: fixture.inbox, stateStore: registry, in: fixture.environment)
    let running = Task { try await listener.run() }
    try await eventually("the roster has changed") { fixture.events.all.contains(.rosterChanged) }
    running.cancel()
    _ = try? await running.finished()
    #expect(try registry.servers().count == 1 && registry.audit.isEmpty)
    #expect(try registry.accounts().map(\.stage) == [.active])
    #expect(try registry.accounts().allSatisfy { $0.secrets.count == 1 })
  }

  /// The error is not signed: it must not need somebody who restarts the service.
  @Test(
    "After an error that only the operator can resolve, the server is contacted again after ten minutes",
    arguments: [TokenServerError.outdated("old"), .configurationInvalid("bad")])
  func errorThatOnlyTheOperatorCanResolve(fault: TokenServerError) async throws {
    let fixture = HandlerFixture()
    fixture.server.fail("validate", fault)
    let running = Task { try await listener(fixture).run() }
    try await eventually("the server is stopped") { fixture.events.all.contains(.stopped(fixture.server.id, fault)) }
    #expect(fixture.inbox.connectivity[fixture.server.id] == .stopped)
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: .seconds(599))
    for _ in 0..<20 { await Task.yield() }
    #expect(fixture.server.calls(of: "validate") == 1)
    fixture.clock.advance(by: .seconds(1))
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    #expect(fixture.server.calls(of: "validate") == 2)
    running.cancel()
    _ = try? await running.finished()
  }

  @Test("A server whose answer was an error that stops is used again when its list has been read")
  func stoppedByAnAnswer() async throws {
    let fixture = HandlerFixture()
    let running = Task { try await listener(fixture).run() }
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    fixture.inbox.connectivity.set(.stopped, to: fixture.server.id, because: .outdated("old"))
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: RequestListener.listInterval)
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    running.cancel()
    _ = try? await running.finished()
  }

  /// The connection is not restarted, and requests delivered another way are found at once.
  @Test("A channel that is down shows and heals") func aChannelThatIsDownShowsAndHeals() async throws {
    let fixture = HandlerFixture()
    let running = Task { try await listener(fixture).run() }
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    fixture.server.set(list: [fixture.request(1)])
    fixture.server.hint(.disconnected("no broker"))
    try await eventually("the channel is down") {
      fixture.events.all.contains(.disconnected(fixture.server.id, .unreachable("no broker")))
    }
    #expect(fixture.inbox.connectivity[fixture.server.id] == .disconnected)
    #expect(fixture.inbox.pending.contains(HandlerFixture.transaction(1)))
    fixture.server.set(list: [fixture.request(2)])
    fixture.server.hint(.pendingChanged)
    try await eventually("request 2 is listed") { fixture.inbox.pending.contains(HandlerFixture.transaction(2)) }
    #expect(fixture.inbox.connectivity[fixture.server.id] == .disconnected)
    fixture.server.hint(.connected)
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    #expect(fixture.server.calls(of: "validate") == 1)
    running.cancel()
    _ = try? await running.finished()
  }

  @Test("A broken stream shows and heals") func aBrokenStreamShowsAndHeals() async throws {
    let fixture = HandlerFixture()
    let running = Task { try await listener(fixture).run() }
    try await eventually("the server is connected") { fixture.inbox.connectivity[fixture.server.id] == .connected }
    fixture.server.breakStream(.unreachable("cable"))
    await HandlerFixture.turn { fixture.events.all.contains(.disconnected(fixture.server.id, .unreachable("cable"))) }
    #expect(fixture.inbox.connectivity[fixture.server.id] == .disconnected)
    await HandlerFixture.turn { fixture.clock.untilNextWakes == .milliseconds(750) }
    fixture.clock.advance(by: .milliseconds(750))
    await HandlerFixture.turn { fixture.inbox.connectivity[fixture.server.id] == .connected }
    running.cancel()
    _ = try? await running.finished()
  }
}
