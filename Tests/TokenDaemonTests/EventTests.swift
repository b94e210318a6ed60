// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import FrontPanel
import Glibc
import JSONSchema
import JSONValues
import MobileAuth
import Synchronization
import Testing
import Threads

@testable import TokenDaemon

@Suite("The lines of `events`", .timeLimit(.minutes(5))) struct EventTests {
  private static let account = AccountID("alice")
  private static let transaction = TransactionID(numberedUUID(7))
  private static let failure = AuthenticationStep.Failure(number: 9027, reason: "custom failed")
  private static let counts = FailureCounts(max: 3, previous: 1)
  private static let info = AuthenticatorInfo(status: 2000, data: "welcome")

  private static func step(_ event: AuthenticationStep.Event) -> TokenEvent {
    .step(AuthenticationStep(event, of: account, transaction, authenticator: "number"))
  }

  private static let named: [(TokenEvent, String)] = [
    (.connected(TokenServerID("s")), "connected"),
    (.disconnected(TokenServerID("s"), .unreachable("why")), "disconnected"),
    (.stopped(TokenServerID("s"), .clockWrong), "stopped"),
    (step(.started(.login)), "authentication-started"), (step(.started(.registration)), "registration-started"),
    (step(.started(.deregistration)), "deregistration-started"), (step(.started(.pinChange)), "pin-change-started"),
    (step(.succeeded(.login, info)), "authenticated"),
    (step(.succeeded(.registration, info)), "authenticator-registered"),
    (step(.succeeded(.pinChange, nil)), "pin-changed"), (step(.failed(.login, failure)), "authentication-failed"),
    (step(.failed(.registration, failure)), "registration-failed"),
    (step(.failed(.deregistration, failure)), "deregistration-failed"),
    (step(.failed(.pinChange, failure)), "pin-change-failed"),
    (step(.challenged(.login, ChallengeSummary(.pin, counts: counts), after: failure)), "challenge"),
    (step(.challenged(.request, ChallengeSummary(.custom, takesPIN: true), after: nil)), "challenge"),
    (step(.challenged(.request, ChallengeSummary(.confirmation), after: nil)), "challenge"),
    (step(.challenged(.request, ChallengeSummary(.choice, counts: counts), after: nil)), "challenge"),
    (step(.challenged(.request, ChallengeSummary(.denialOnly), after: nil)), "challenge"),
    (step(.requestHandled(.accept, info)), "request-handled"),
    (step(.requestHandled(.deny(.notMe), nil)), "request-handled"), (step(.requestFailed(failure)), "request-failed"),
    (step(.requestUnconfirmed(failure)), "request-unconfirmed"),
    (step(.loggedOut(isServerNotified: false)), "logged-out"),
    (step(.deregistered(isServerNotified: true)), "authenticator-deregistered"),
    (step(.deregistered(isServerNotified: nil)), "authenticator-deregistered"),
    (step(.revoked(failure)), "authenticator-revoked"), (step(.mustEnroll(failure)), "must-enroll"),
  ]

  private func text(_ line: EventLine) -> String { String(decoding: JSONMessage.encode(line), as: UTF8.self) }

  @Test("Each event has its name and the form of the schema", arguments: named) func forms(
    event: TokenEvent, name: String
  ) throws {
    let line = try #require(EventLine(event, sequence: 1, atMilliseconds: 2))
    #expect(line.event == name)
    #expect(try JSONSchema(named: "events").violations(in: text(line)) == [])
    // As the command reads it.
    guard case .answer(let read) = try ControlResponse<EventLine>(line: JSONMessage.encode(line)) else {
      Issue.record("\(text(line)) is no answer")
      return
    }
    #expect(read == line)
  }

  @Test("A challenge has kind, counts, fallbacks, and why the former input did not count") func challenge() throws {
    let line = try #require(EventLine(Self.named[14].0, sequence: 3, atMilliseconds: 4))
    #expect(
      text(line) == #"""
        {"account":"alice","at_ms":4,"authenticator":"number","counts":{"max_failure_count":3,"previous_failure_count":1,"remaining_failure_count":2},"event":"challenge","failure":{"code":9027,"reason":"custom failed"},"fallbacks":[],"kind":"pin","purpose":"login","sequence":3,"transaction":"00000000-0000-4000-8000-000000000007","version":1}
        """#)
  }

  @Test(
    "Numbers of failures are members of their own",
    arguments: [
      (.disconnected(TokenServerID("s"), .unreachable("why")), 9001, "why"),
      (.disconnected(TokenServerID("s"), .noNetwork("why")), 9000, "why"),
      (step(.loggedOut(isServerNotified: false)), 10009, "the token server was not notified"),
      (step(.deregistered(isServerNotified: false)), 9028, "the token server was not notified"),
    ] as [(TokenEvent, Int, String)])
  func numbers(event: TokenEvent, number: Int, reason: String) throws {
    let line = try #require(EventLine(event, sequence: 1, atMilliseconds: 2))
    #expect(line.failure == EventLine.Failure(code: number, reason: reason))
    #expect(try JSONSchema(named: "events").violations(in: text(line)) == [])
  }

  @Test("What was notified to the server has no failure") func notified() throws {
    for event in [AuthenticationStep.Event.loggedOut(isServerNotified: true), .deregistered(isServerNotified: true)] {
      #expect(try #require(EventLine(Self.step(event), sequence: 1, atMilliseconds: 2)).failure == nil)
    }
    // The server does not know an authenticator that stands in for its biometric check.
    let unknown = AuthenticationStep.Event.deregistered(isServerNotified: nil)
    let line = try #require(EventLine(Self.step(unknown), sequence: 1, atMilliseconds: 2))
    #expect(line.failure == nil && line.isServerNotified == nil && !text(line).contains("server_notified"))
    #expect(
      SessionResponse(serverNotified: true).number == nil && SessionResponse(serverNotified: false).number == 10009)
    #expect(RemovalResponse(removed: "a", serverNotified: false).number == 10003)
    #expect(RemovalResponse(removed: "a", serverNotified: true).number == nil)
    #expect(AuthenticatorsResponse(account: "a", authenticators: [], serverNotified: false).number == 9028)
    #expect(AuthenticatorsResponse(account: "a", authenticators: []).number == nil)
  }

  @Test("The longest result of a script has the form of the schema") func longestResult() throws {
    let info = AuthenticatorInfo(status: 2000, data: String(repeating: "\u{1}", count: AuthenticatorInfo.longestData))
    let line = try #require(EventLine(Self.step(.succeeded(.login, info)), sequence: 1, atMilliseconds: 2))
    #expect(line.info?.data == info.data)
    #expect(try JSONSchema(named: "events").violations(in: text(line)) == [])
  }

  @Test(
    "Other events are not published",
    arguments: [
      .rosterChanged, .counted(account, counts), .accountLost(account), .trouble(account, "x"), .dropped("x"),
      .mailboxMoved(account),
    ] as [TokenEvent])
  func unpublished(event: TokenEvent) { #expect(EventLine(event, sequence: 1, atMilliseconds: 2) == nil) }

  /// A code for the portal is a secret of the login.
  @Test("No code is published") func codes() throws {
    let code = try #require(PortalCode(digits: "123456", message: "type it"))
    #expect(EventLine(.code(Self.account, try #require(Self.transaction), code), sequence: 1, atMilliseconds: 2) == nil)
  }

  @Test(
    "The schema refuses other lines",
    arguments: [
      "{}", "[]", #"{"version":2,"sequence":1,"at_ms":1,"event":"following"}"#,
      #"{"version":1,"sequence":1,"at_ms":1,"event":"flying"}"#,
      #"{"version":1,"sequence":1,"at_ms":1,"event":"connected"}"#,
      #"{"version":1,"sequence":-1,"at_ms":1,"event":"following"}"#,
      #"{"version":1,"sequence":1,"at_ms":1,"event":"following","pin":"13579"}"#,
      #"{"version":1,"sequence":1,"at_ms":1,"event":"following","transaction":"T"}"#,
      #"{"version":1,"sequence":1,"at_ms":1,"event":"must-enroll","account":"a"}"#,
    ])
  func refusedLines(line: String) throws { #expect(try !JSONSchema(named: "events").violations(in: line).isEmpty) }

  // MARK: Followers

  @Test("A follower gets each event from now on, with its number") func following() async throws {
    let publisher = EventPublisher(clock: ManualClock())
    publisher.publish(Self.named[0].0)
    let stream = publisher.following()
    for (event, _) in Self.named[1...2] { publisher.publish(event) }
    publisher.publish(.rosterChanged)
    publisher.publish(Self.named[3].0)
    var lines: [EventLine] = []
    for await line in stream {
      lines.append(line)
      if lines.count == 4 { break }
    }
    #expect(lines.map(\.event) == ["following", "disconnected", "stopped", "authentication-started"])
    #expect(lines.map(\.sequence) == [1, 2, 3, 4])
    #expect(publisher.past.map(\.sequence) == [1, 2, 3, 4])
  }

  @Test("A follower that does not read loses the oldest events, and sees how many") func slowFollower() async throws {
    let publisher = EventPublisher(clock: ManualClock())
    let stream = publisher.following()
    let count = Int64(EventPublisher.longestBacklog + 100)
    for _ in 1...count { publisher.publish(Self.named[0].0) }
    var numbers: [Int64] = []
    for await line in stream {
      numbers.append(line.sequence)
      if line.sequence == count { break }
    }
    #expect(numbers == Array((count - Int64(EventPublisher.longestBacklog) + 1)...count))
    #expect(publisher.past.count == EventPublisher.mostKept && publisher.past.last?.sequence == count)
  }

  /// Fails, now and then, if the end of a stream waits for a lock that a publishing thread has.
  @Test("Followers that leave while events are published do not stop the service") func leavingFollowers() async {
    let publisher = EventPublisher(clock: ManualClock())
    let (stop, haveLeft) = (StopFlag(), StopFlag())
    LoopThread(named: "publisher") { while !stop.isSet { publisher.publish(Self.named[0].0) } }.detach()
    // Whatever may block has a thread of its own, and the test waits for none of them.
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isWaiting = detachThread {
        _ = detachThread { if Self.followAndLeave(publisher, until: stop) { haveLeft.set() } }
        for _ in 1...60_000 where !haveLeft.isSet { usleep(1000) }
        continuation.resume()
      }
      if !isWaiting { continuation.resume() }
    }
    stop.set()
    #expect(haveLeft.isSet)
  }

  /// Many followers, one after the other, which leave after their first line. Blocks the thread.
  /// - Returns: false if `stop` was set before the last one had left.
  private static func followAndLeave(_ publisher: EventPublisher, until stop: StopFlag) -> Bool {
    // A busy machine has less time for each.
    let end = ContinuousClock.now + .seconds(20)
    for _ in 1...2000 where ContinuousClock.now < end {
      let (hasBegun, hasLeft) = (StopFlag(), StopFlag())
      let follower = Task {
        for await _ in publisher.following() { hasBegun.set() }
        hasLeft.set()
      }
      while !hasBegun.isSet, !stop.isSet { usleep(10) }
      follower.cancel()
      while !hasLeft.isSet, !stop.isSet { usleep(10) }
      if !hasLeft.isSet { return false }
    }
    return true
  }

  private final class StopFlag: Sendable {
    private let value = Mutex(false)
    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }
  }

  @Test("The commands get past events, and those from now on; all lines are valid") func throughTheService()
    async throws
  {
    let fixture = try ServiceFixture(kinds: Backends.kinds + [FileBackend.self])
    let server = FileServer(path: fixture.serverFile)
    let (lines, panel) = (RecordedLines(), RecordedLines())
    let running = [
      Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() },
      Task { _ = try? await fixture.handler.answer(.events(follow: true)) { lines.add($0) } },
      Task { _ = try? await fixture.handler.answer(.watch) { panel.add($0) } },
    ]
    try await fixture.until("an event and a change of the panel") { !lines.all.isEmpty && !panel.all.isEmpty }
    _ = try await fixture.answer(
      .enroll(EnrollmentOptions(uri: "file-token:\(server.path)#ann")), as: EnrollmentResponse.self)
    // A list can have the request before the server counts as connected.
    try await fixture.until("the connection") { lines.events.last == "connected" }
    let request = FileServer.Contents.Request(id: numberedUUID(1), message: "Pay 5 EUR?")
    try server.change { $0.pending["ann"]?.append(request) }
    _ = try await fixture.shownRequest()
    _ = try await fixture.answer(.simulate(.hold(milliseconds: 1000)), as: Done.self)
    try await fixture.until("the end of the request") {
      lines.events.last == "request-handled" && panel.events.last == "ended"
    }
    let past = RecordedLines()
    try await fixture.handler.answer(.events(follow: false)) { past.add($0) }
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
    #expect(lines.events == ["following", "connected", "challenge", "request-handled"])
    #expect(past.all == Array(lines.all.dropFirst()))
    for line in lines.all { #expect(try JSONSchema(named: "events").violations(in: line) == []) }
    for line in panel.all { #expect(try JSONSchema(named: "watch").violations(in: line) == []) }
  }
}

private final class RecordedLines: Sendable {
  private let list = Mutex<[String]>([])

  var all: [String] { list.withLock { $0 } }
  var events: [String] { all.compactMap { JSONValue(parsing: Array($0.utf8))?["event"]?.text } }

  func add(_ reply: some Encodable) {
    list.withLock { $0.append(String(decoding: JSONMessage.encode(reply), as: UTF8.self)) }
  }
}
