// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Synchronization
import Testing

@testable import MobileAuth
@testable import PrivacyIDEAAdapter

@Suite(.timeLimit(.minutes(5))) struct `Polling` {
  /// - Returns: the events of the given number of rounds, and the pauses between them, rounded to a tenth of a second.
  private func hints(_ world: ServerWorld, rounds: Int) async throws -> (hints: [Hint], slept: [Duration]) {
    let collector = Task {
      var hints: [Hint] = []
      // The cancellation reaches the stream or its wait first: the stream ends or throws.
      do { for try await hint in world.token.hints() { hints.append(hint) } } catch is CancellationError {}
      return hints
    }
    while world.server.state.withLock({ $0.polls.count }) <= rounds {
      // One task sleeps; after each step it is asleep again.
      await world.timekeeper.untilAsleep()
      world.timekeeper.advance(by: .milliseconds(100))
    }
    await world.timekeeper.untilAsleep()
    collector.cancel()
    let polls = world.server.state.withLock { $0.polls }
    return (try await collector.value, zip(polls, polls.dropFirst()).map { $1 - $0 })
  }

  @Test func `Is fast at first, then slow`() async throws {
    let world = try ServerWorld()
    let slept = try await hints(world, rounds: 30).slept
    #expect(slept.count == 30)
    #expect(slept.prefix(18).allSatisfy { abs($0.milliseconds - 3000) <= 100 })
    #expect(slept.suffix(8).allSatisfy { abs($0.milliseconds - 10_000) <= 100 })
  }

  @Test func `Is woken from its rest, once for each time, and rests again`() async throws {
    let world = try ServerWorld()
    let collector = Task { for try await _ in world.token.hints() {} }
    defer { collector.cancel() }
    func polls() -> [Moment] { world.server.state.withLock { $0.polls } }
    for count in 1...3 {
      try await eventually { polls().count >= count }
      await world.timekeeper.untilAsleep()
      world.token.wake()
    }
    try await eventually { polls().count >= 4 }
    await world.timekeeper.untilAsleep()
    #expect(Set(polls()).count == 1, "no time has passed")
    for _ in 0..<1000 { await Task.yield() }
    #expect(polls().count == 4)
    world.timekeeper.advance(by: .seconds(4))
    try await eventually { polls().count >= 5 }
  }

  /// Fails if the whole of a list that is too long is refused: the token would then receive no challenge.
  @Test("The challenges at the start of a list that is too long are shown")
  func cutList() async throws {
    let world = try ServerWorld()
    let first = world.server.challenge("PIPU0")
    world.server.challenge("PIPU0")
    world.server.state.withLock { $0.missingBytes = 60 }
    let pending = try await world.token.pendingRequests()
    #expect(pending.map(\.transaction) == [world.token.book.transaction(serial: "PIPU0", nonce: first)])
    // A body that is not the start of a list is an error: no open request counts as ended.
    world.server.state.withLock { $0.missingBytes = 10_000_000 }
    world.timekeeper.advance(by: .seconds(5))
    await #expect(throws: TokenServerFault.self) { try await world.token.pendingRequests() }
    world.server.state.withLock { $0.missingBytes = nil }
    world.timekeeper.advance(by: .seconds(60))
    #expect(try await world.token.pendingRequests().count == 2)
  }

  @Test func `Stays fast while something is open`() async throws {
    let world = try ServerWorld()
    world.server.challenge("PIPU0")
    let (hints, slept) = try await hints(world, rounds: 40)
    #expect(slept.allSatisfy { abs($0.milliseconds - 3000) <= 100 })
    // The first list is reported by the connection itself.
    #expect(hints == [.connected])
  }

  @Test(arguments: [(0.0, 2.7), (0.5, 3.0), (1.0, 3.3)])
  func `Does not keep step with others`(random: Double, seconds: Double) {
    let interval = PollingPace().interval(quiet: .zero, random: random)
    #expect(abs(Double(interval.milliseconds) - seconds * 1000) < 2)
  }

  @Test func `Backs off, but not for ever`() {
    let pauses = (0..<20).map { PollingPace().backOff(failures: $0, random: 1) }
    #expect(pauses.first == .seconds(3) && pauses.last == .seconds(60))
    #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0 <= $1 })
  }

  @Test func `A list that was just read is not read again`() async throws {
    let world = try ServerWorld()
    world.server.challenge("PIPU0")
    #expect(try await world.token.pendingRequests().count == 1)
    #expect(try await world.token.pendingRequests().count == 1)
    #expect(world.server.state.withLock { $0.polls.count } == 1)
    world.timekeeper.advance(by: .seconds(2))
    _ = try await world.token.pendingRequests()
    #expect(world.server.state.withLock { $0.polls.count } == 2)
  }

  @Test func `Requests are newest first, known by their nonce and live 120 seconds`() async throws {
    let world = try ServerWorld()
    let nonces = (0..<3).map { _ in world.server.challenge("PIPU0") }
    let first = try await world.token.pendingRequests()
    let expected = nonces.reversed().map { world.token.book.transaction(serial: "PIPU0", nonce: $0) }
    #expect(first.map(\.transaction) == expected)
    world.timekeeper.advance(by: .seconds(30))
    let later = world.server.challenge("PIPU0")
    let second = try await world.token.pendingRequests()
    #expect(second.first?.transaction == world.token.book.transaction(serial: "PIPU0", nonce: later))
    #expect(second.dropFirst().map(\.deadline) == first.map(\.deadline))
    #expect(first.allSatisfy { $0.deadline.sinceBeginning == .seconds(120) })
    #expect(try ServerWorld().token.book.transaction(serial: "PIPU0", nonce: later) == second[0].transaction)
    #expect(world.token.book.transaction(serial: "PIPU1", nonce: later) != second[0].transaction)
  }

  @Test func `One bad element loses no other, and is reported once`() async throws {
    let world = try ServerWorld()
    world.server.challenge("PIPU0", ["question": String(repeating: "x", count: 5000)])
    world.server.challenge("PIPU0", ["question": "", "title": "VPN"])
    for _ in 0..<3 {
      #expect(try await world.token.pendingRequests().map(\.message) == ["VPN"])
      world.timekeeper.advance(by: .seconds(2))
    }
    #expect(world.events.troubles == ["a challenge was dropped: its question is too long"])
  }

  /// An element of one token's list, replayed in another token's list or after it was answered.
  @Test func `Neither another token's challenge nor one that was answered is shown`() async throws {
    let world = try ServerWorld(accounts: 2)
    let nonce = world.server.challenge("PIPU0")
    _ = try await world.answer(world.open(), .hold)
    world.server.state.withLock { $0.challenges[0].isOpen = true }
    world.server.challenge("PIPU1", ["serial": "PIPU0"])
    world.timekeeper.advance(by: .seconds(2))
    #expect(try await world.token.pendingRequests().isEmpty)
    #expect(world.events.troubles == ["a challenge was dropped: it is for another token"])
    #expect(world.server.answers(to: nonce).count == 1)
  }

  @Test func `Five hundred open challenges are no trouble`() async throws {
    let world = try ServerWorld()
    for _ in 0..<500 { world.server.challenge("PIPU0") }
    #expect(try await world.token.pendingRequests().count == 500)
    #expect(world.events.troubles.isEmpty)
  }

  @Test func `A deleted token is reported after five refusals, and the others continue`() async throws {
    let world = try ServerWorld(accounts: 2)
    world.server.challenge("PIPU1")
    world.server.state.withLock { $0.keys["PIPU0"] = nil }
    for _ in 0..<4 {
      #expect(try await world.token.pendingRequests().map(\.account.text) == ["account 1"])
      #expect(try await world.token.validate() == Validation())
      world.timekeeper.advance(by: .seconds(2))
    }
    _ = try await world.token.pendingRequests()
    #expect(try await world.token.validate().disenrolledAccounts == [AccountID("account 0")])
    #expect(world.events.troubles == ["\(PollFault.notKnown)"])
    let polls = world.server.state.withLock { $0.polls.count }
    world.timekeeper.advance(by: .seconds(2))
    _ = try await world.token.pendingRequests()
    #expect(world.server.state.withLock { $0.polls.count } == polls + 1)
  }

  @Test func `A refusal now and then is not the end`() async throws {
    let world = try ServerWorld()
    for _ in 0..<4 {
      for _ in 0..<4 { world.server.state.withLock { $0.failures.append(FakePushServer.error(400, 10)) } }
      for _ in 0..<5 {
        _ = try await world.token.pendingRequests()
        world.timekeeper.advance(by: .seconds(2))
      }
    }
    #expect(try await world.token.validate() == Validation())
  }

  @Test func `Where it is forbidden it is rare, and others are not kept waiting`() async throws {
    let world = try ServerWorld(accounts: 2)
    world.server.state.withLock { $0.isPollingForbidden = ["PIPU0"] }
    for _ in 0..<3 {
      _ = try await world.token.pendingRequests()
      world.timekeeper.advance(by: .seconds(2))
    }
    #expect(world.server.state.withLock { $0.polls.count } == 4)
    world.timekeeper.advance(by: .seconds(300))
    _ = try await world.token.pendingRequests()
    #expect(world.server.state.withLock { $0.polls.count } == 6)
    world.server.state.withLock { $0.isPollingForbidden = ["PIPU0", "PIPU1"] }
    world.timekeeper.advance(by: .seconds(300))
    await #expect(throws: TokenServerFault.switchedOff("ERR303")) { try await world.token.pendingRequests() }
  }

  @Test func `Whose polls fail is asked ever more seldom, and the others as ever`() async throws {
    let world = try ServerWorld(accounts: 2)
    world.server.state.withLock { $0.isBroken = ["PIPU0"] }
    func counts(afterRounds rounds: Int) async throws -> [String: Int] {
      let before = world.server.state.withLock { $0.pollCounts }
      for _ in 0..<rounds {
        _ = try await world.token.pendingRequests()
        world.timekeeper.advance(by: .seconds(3))
      }
      return world.server.state.withLock { $0.pollCounts }.merging(before) { $0 - $1 }
    }
    // Pauses of 4.5, 9, 18, 36 and then 45 s, in rounds of three.
    #expect(try await counts(afterRounds: 20) == ["PIPU0": 4, "PIPU1": 20])
    #expect(try await counts(afterRounds: 60) == ["PIPU0": 4, "PIPU1": 60])
    #expect(world.events.troubles == ["status 500 without a known error message (9001)"])
    world.server.state.withLock { $0.isBroken = [] }
    _ = try await counts(afterRounds: 15)
    #expect(try await counts(afterRounds: 5) == ["PIPU0": 5, "PIPU1": 5])
  }

  @Test func `Only tokens that are fully enrolled are polled`() async throws {
    let stages = [EnrolmentStage.enrolling, .mustEnrolAgain, .active]
    let world = try ServerWorld(accounts: 3, stage: { stages[$0] })
    for serial in ["PIPU0", "PIPU1", "PIPU2"] { world.server.challenge(serial) }
    #expect(try await world.token.pendingRequests().map(\.account.text) == ["account 2"])
    #expect(world.server.state.withLock { $0.pollCounts } == ["PIPU2": 1])
    await #expect(throws: TokenServerFault.notEnrolled) {
      try await world.token.status(
        of: world.token.book.transaction(serial: "PIPU0", nonce: "N"), account: AccountID("account 0"))
    }
  }

  @Test(arguments: [
    ("Log in | as Größe?", "VPN", "Log in | as Größe?"), ("", "VPN", "VPN"), ("\u{0}\n", "VPN", "VPN"),
    ("", "\u{202E}", "Log in?"),
  ])
  func `A request has a text even if its own are missing`(question: String, title: String, message: String) async throws
  {
    let world = try ServerWorld()
    world.server.challenge("PIPU0", ["question": question, "title": title])
    #expect(try await world.token.pendingRequests().map(\.message) == [message])
  }

  @Test func `The same challenge twice in one list is one request`() async throws {
    let world = try ServerWorld()
    let nonce = world.server.challenge("PIPU0")
    world.server.challenge("PIPU0", ["nonce": nonce])
    #expect(try await world.token.pendingRequests().count == 1)
    #expect(world.events.troubles.isEmpty)
  }

  @Test func `A server that cannot be reached is the listener's business`() async throws {
    let world = try ServerWorld()
    world.weather.forecast.withLock { $0 = [.neverArrives] }
    await #expect(throws: TokenServerFault.unreachable("the token server cannot be reached: no route")) {
      try await world.token.pendingRequests()
    }
    #expect(try await world.token.pendingRequests().isEmpty)
  }

  @Test func `What became of a request is whether it is still listed`() async throws {
    let world = try ServerWorld()
    let nonce = world.server.challenge("PIPU0")
    let pending = try #require(try await world.token.pendingRequests().first)
    #expect(
      try await world.token.status(of: pending.transaction, account: pending.account) == RemoteStatus(state: .open))
    world.server.end(nonce)
    await #expect(throws: TokenServerFault.requestNotFound) {
      try await world.token.status(of: pending.transaction, account: pending.account)
    }
  }
}
