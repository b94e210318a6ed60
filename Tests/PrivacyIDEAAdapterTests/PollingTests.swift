// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Synchronization
import Testing

@testable import MobileAuth
@testable import PrivacyIDEAAdapter

@Suite("Polling", .timeLimit(.minutes(5))) struct PollingTests {
  /// - Returns: the events of the given number of rounds, and the pauses between them, rounded to a tenth of a second.
  private func hints(_ fixture: PrivacyIDEAFixture, rounds: Int) async throws -> (hints: [Hint], slept: [Duration]) {
    let collector = Task {
      var hints: [Hint] = []
      // The cancellation reaches the stream or its wait first: the stream ends or throws.
      do { for try await hint in fixture.token.hints() { hints.append(hint) } } catch is CancellationError {}
      return hints
    }
    for _ in 0..<100_000 where fixture.server.state.withLock({ $0.polls.count }) <= rounds {
      // One task sleeps; after each step it is asleep again.
      await fixture.clock.untilAsleep()
      fixture.clock.advance(by: .milliseconds(100))
    }
    try #require(fixture.server.state.withLock { $0.polls.count } > rounds)
    await fixture.clock.untilAsleep()
    collector.cancel()
    let polls = fixture.server.state.withLock { $0.polls }
    return (try await collector.finished(), zip(polls, polls.dropFirst()).map { $1 - $0 })
  }

  @Test("Is fast at first, then slow") func isFastAtFirstThenSlow() async throws {
    let fixture = try PrivacyIDEAFixture()
    let slept = try await hints(fixture, rounds: 30).slept
    #expect(slept.count == 30)
    #expect(slept.prefix(18).allSatisfy { abs($0.milliseconds - 3000) <= 100 })
    #expect(slept.suffix(8).allSatisfy { abs($0.milliseconds - 10_000) <= 100 })
  }

  @Test("Is woken from its rest, once for each time, and rests again")
  func isWokenFromItsRestOnceForEachTimeAndRestsAgain() async throws {
    let fixture = try PrivacyIDEAFixture()
    let collector = Task { for try await _ in fixture.token.hints() {} }
    defer { collector.cancel() }
    func polls() -> [MonotonicInstant] { fixture.server.state.withLock { $0.polls } }
    for count in 1...3 {
      try await eventually("poll \(count)") { polls().count >= count }
      await fixture.clock.untilAsleep()
      fixture.token.wake()
    }
    try await eventually("poll 4") { polls().count >= 4 }
    await fixture.clock.untilAsleep()
    #expect(Set(polls()).count == 1, "no time has passed")
    for _ in 0..<1000 { await Task.yield() }
    #expect(polls().count == 4)
    fixture.clock.advance(by: .seconds(4))
    try await eventually("poll 5") { polls().count >= 5 }
  }

  @Test("A hint that comes before its login is stored is followed by two rounds") func earlyHint() async throws {
    let fixture = try PrivacyIDEAFixture()
    let changes = Mutex(0)
    let collector = Task {
      for try await hint in fixture.token.hints() where hint == .pendingChanged { changes.withLock { $0 += 1 } }
    }
    defer { collector.cancel() }
    func polls() -> Int { fixture.server.state.withLock { $0.polls.count } }
    try await eventually("poll 1") { polls() == 1 }
    await fixture.clock.untilAsleep()
    fixture.token.wake()
    try await eventually("poll 2") { polls() == 2 }
    // The second list has been read.
    await fixture.clock.untilAsleep()
    fixture.server.challenge("PIPU0")
    fixture.clock.advance(by: .seconds(1))
    try await eventually("a change of the list") { changes.withLock { $0 } == 1 }
    #expect(polls() == 3)
    // Then at the usual interval again.
    await fixture.clock.untilAsleep()
    fixture.clock.advance(by: .seconds(2))
    for _ in 0..<1000 { await Task.yield() }
    #expect(polls() == 3)
  }

  /// Fails if the whole of a list that is too long is refused: the token would then receive no challenge.
  @Test("The challenges at the start of a list that is too long are shown")
  func cutList() async throws {
    let fixture = try PrivacyIDEAFixture()
    let first = fixture.server.challenge("PIPU0")
    fixture.server.challenge("PIPU0")
    fixture.server.state.withLock { $0.missingBytes = 60 }
    let pending = try await fixture.token.pendingRequests()
    #expect(pending.map(\.transaction) == [fixture.token.challenges.transaction(serial: "PIPU0", nonce: first)])
    // A body that is not the start of a list is an error: no open request counts as ended.
    fixture.server.state.withLock { $0.missingBytes = 10_000_000 }
    fixture.clock.advance(by: .seconds(5))
    await #expect(throws: TokenServerError.self) { try await fixture.token.pendingRequests() }
    fixture.server.state.withLock { $0.missingBytes = nil }
    fixture.clock.advance(by: .seconds(60))
    #expect(try await fixture.token.pendingRequests().count == 2)
  }

  @Test("Stays fast while something is open") func staysFastWhileSomethingIsOpen() async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0")
    let (hints, slept) = try await hints(fixture, rounds: 40)
    #expect(slept.allSatisfy { abs($0.milliseconds - 3000) <= 100 })
    // The first list is reported by the connection itself.
    #expect(hints == [.connected])
  }

  @Test("Does not keep step with others", arguments: [(0.0, 2.7), (0.5, 3.0), (1.0, 3.3)])
  func doesNotKeepStepWithOthers(random: Double, seconds: Double) {
    let interval = PollingPace().interval(quiet: .zero, random: random)
    #expect(abs(Double(interval.milliseconds) - seconds * 1000) < 2)
  }

  @Test("Whether a refused token is deleted is asked more and more rarely, at least once a day")
  func questions() {
    let pauses = [60, 1000, 86_400, 2_592_000].map { PollingPace.untilNextQuestion(refusedFor: .seconds($0)) }
    #expect(pauses == [300, 1000, 86_400, 86_400].map { .seconds($0) })
  }

  @Test("Backs off, but not for ever") func backsOffButNotForEver() {
    let pauses = (0..<20).map { PollingPace().backOff(failures: $0, random: 1) }
    #expect(pauses.first == .seconds(3) && pauses.last == .seconds(60))
    #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0 <= $1 })
  }

  @Test("A list that was just read is not read again") func listThatWasJustReadIsNotReadAgain() async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0")
    #expect(try await fixture.token.pendingRequests().count == 1)
    #expect(try await fixture.token.pendingRequests().count == 1)
    #expect(fixture.server.state.withLock { $0.polls.count } == 1)
    fixture.clock.advance(by: .seconds(2))
    _ = try await fixture.token.pendingRequests()
    #expect(fixture.server.state.withLock { $0.polls.count } == 2)
  }

  @Test("Requests are newest first, known by their nonce and live 120 seconds")
  func requestsAreNewestFirstKnownByTheirNonceAndLive120Seconds() async throws {
    let fixture = try PrivacyIDEAFixture()
    let nonces = (0..<3).map { _ in fixture.server.challenge("PIPU0") }
    let first = try await fixture.token.pendingRequests()
    let expected = nonces.reversed().map { fixture.token.challenges.transaction(serial: "PIPU0", nonce: $0) }
    #expect(first.map(\.transaction) == expected)
    fixture.clock.advance(by: .seconds(30))
    let later = fixture.server.challenge("PIPU0")
    let second = try await fixture.token.pendingRequests()
    #expect(second.first?.transaction == fixture.token.challenges.transaction(serial: "PIPU0", nonce: later))
    #expect(second.dropFirst().map(\.deadline) == first.map(\.deadline))
    #expect(first.allSatisfy { $0.deadline.uptime == .seconds(120) })
    #expect(
      try PrivacyIDEAFixture().token.challenges.transaction(serial: "PIPU0", nonce: later) == second[0].transaction)
    #expect(fixture.token.challenges.transaction(serial: "PIPU1", nonce: later) != second[0].transaction)
  }

  @Test(
    "One bad element loses no other, and is reported once",
    arguments: [
      (String(repeating: "x", count: 5000), "its question is too long"),
      // The whole list is rejected by the parser.
      ("e" + String(repeating: "\u{301}", count: 31), "it is not an object that can be parsed"),
    ])
  func oneBadElementLosesNoOtherAndIsReportedOnce(question: String, why: String) async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0", ["question": question])
    fixture.server.challenge("PIPU0", ["question": "", "title": "VPN"])
    for _ in 0..<3 {
      #expect(try await fixture.token.pendingRequests().map(\.message) == ["VPN"])
      fixture.clock.advance(by: .seconds(2))
    }
    #expect(fixture.events.troubles == ["a challenge was dropped: \(why)"])
  }

  /// An element of one token's list, replayed in another token's list or after it was answered.
  @Test("Neither another token's challenge nor one that was answered is shown")
  func neitherAnotherTokensChallengeNorOneThatWasAnsweredIsShown() async throws {
    let fixture = try PrivacyIDEAFixture(accounts: 2)
    let nonce = fixture.server.challenge("PIPU0")
    _ = try await fixture.answer(fixture.open(), .hold)
    fixture.server.state.withLock { $0.challenges[0].isOpen = true }
    fixture.server.challenge("PIPU1", ["serial": "PIPU0"])
    fixture.clock.advance(by: .seconds(2))
    #expect(try await fixture.token.pendingRequests().isEmpty)
    #expect(fixture.events.troubles == ["a challenge was dropped: it is for another token"])
    #expect(fixture.server.answers(to: nonce).count == 1)
  }

  @Test("Five hundred open challenges are no trouble") func fiveHundredOpenChallengesAreNoTrouble() async throws {
    let fixture = try PrivacyIDEAFixture()
    for _ in 0..<500 { fixture.server.challenge("PIPU0") }
    #expect(try await fixture.token.pendingRequests().count == 500)
    #expect(fixture.events.troubles.isEmpty)
  }

  @Test("Where it is forbidden it is rare, and others are not kept waiting")
  func whereItIsForbiddenItIsRareAndOthersAreNotKeptWaiting() async throws {
    let fixture = try PrivacyIDEAFixture(accounts: 2)
    fixture.server.state.withLock { $0.isPollingForbidden = ["PIPU0"] }
    for _ in 0..<3 {
      _ = try await fixture.token.pendingRequests()
      fixture.clock.advance(by: .seconds(2))
    }
    #expect(fixture.server.state.withLock { $0.polls.count } == 4)
    fixture.clock.advance(by: .seconds(300))
    _ = try await fixture.token.pendingRequests()
    #expect(fixture.server.state.withLock { $0.polls.count } == 6)
    fixture.server.state.withLock { $0.isPollingForbidden = ["PIPU0", "PIPU1"] }
    fixture.clock.advance(by: .seconds(300))
    await #expect(throws: TokenServerError.switchedOff("ERR303")) { try await fixture.token.pendingRequests() }
  }

  @Test("Failing accounts are polled less often, and the others as before")
  func failingAccountsArePolledLessOftenAndTheOthersAsBefore() async throws {
    let fixture = try PrivacyIDEAFixture(accounts: 2)
    fixture.server.state.withLock { $0.isBroken = ["PIPU0"] }
    func counts(afterRounds rounds: Int) async throws -> [String: Int] {
      let before = fixture.server.state.withLock { $0.pollCounts }
      for _ in 0..<rounds {
        _ = try await fixture.token.pendingRequests()
        fixture.clock.advance(by: .seconds(3))
      }
      return fixture.server.state.withLock { $0.pollCounts }.merging(before) { $0 - $1 }
    }
    // Pauses of 4.5, 9, 18, 36 and then 45 s, in rounds of three.
    #expect(try await counts(afterRounds: 20) == ["PIPU0": 4, "PIPU1": 20])
    #expect(try await counts(afterRounds: 60) == ["PIPU0": 4, "PIPU1": 60])
    #expect(fixture.events.troubles == ["status 500 without a known error message (9001)"])
    fixture.server.state.withLock { $0.isBroken = [] }
    _ = try await counts(afterRounds: 15)
    #expect(try await counts(afterRounds: 5) == ["PIPU0": 5, "PIPU1": 5])
  }

  @Test("Only tokens that are fully enrolled are polled") func onlyTokensThatAreFullyEnrolledArePolled() async throws {
    let stages = [EnrollmentStage.enrolling, .mustEnrollAgain, .active]
    let fixture = try PrivacyIDEAFixture(accounts: 3, stage: { stages[$0] })
    for serial in ["PIPU0", "PIPU1", "PIPU2"] { fixture.server.challenge(serial) }
    #expect(try await fixture.token.pendingRequests().map(\.account.text) == ["account 2"])
    #expect(fixture.server.state.withLock { $0.pollCounts } == ["PIPU2": 1])
    await #expect(throws: TokenServerError.notEnrolled) {
      try await fixture.token.status(
        of: fixture.token.challenges.transaction(serial: "PIPU0", nonce: "N"), account: AccountID("account 0"))
    }
  }

  @Test(
    "A request has a text even if its own are missing",
    arguments: [
      ("Log in | as Größe?", "VPN", "Log in | as Größe?"), ("", "VPN", "VPN"), ("\u{0}\n", "VPN", "VPN"),
      ("", "\u{202E}", "Log in?"),
    ])
  func requestHasATextEvenIfItsOwnAreMissing(question: String, title: String, message: String) async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.server.challenge("PIPU0", ["question": question, "title": title])
    #expect(try await fixture.token.pendingRequests().map(\.message) == [message])
  }

  @Test("The same challenge twice in one list is one request") func sameChallengeTwiceInOneListIsOneRequest()
    async throws
  {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0")
    fixture.server.challenge("PIPU0", ["nonce": nonce])
    #expect(try await fixture.token.pendingRequests().count == 1)
    #expect(fixture.events.troubles.isEmpty)
  }

  @Test("A server that cannot be reached is the listener's business")
  func serverThatCannotBeReachedIsTheListenersBusiness() async throws {
    let fixture = try PrivacyIDEAFixture()
    fixture.weather.forecast.withLock { $0 = [.neverArrives] }
    await #expect(throws: TokenServerError.unreachable("the token server cannot be reached: no route")) {
      try await fixture.token.pendingRequests()
    }
    #expect(try await fixture.token.pendingRequests().isEmpty)
  }

  @Test("The outcome of a request is whether it is still listed") func outcomeOfARequestIsWhetherItIsStillListed()
    async throws
  {
    let fixture = try PrivacyIDEAFixture()
    let nonce = fixture.server.challenge("PIPU0")
    let pending = try #require(try await fixture.token.pendingRequests().first)
    #expect(
      try await fixture.token.status(of: pending.transaction, account: pending.account) == RemoteStatus(state: .open))
    fixture.server.end(nonce)
    await #expect(throws: TokenServerError.requestNotFound) {
      try await fixture.token.status(of: pending.transaction, account: pending.account)
    }
  }
}
