// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FrontPanel
import MobileAuth
import Secrets
import Testing

/// A real panel with a real handler: input for one request never answers another request.
@Suite(.timeLimit(.minutes(5))) struct SwapTests {
  private let clock = ManualClock()
  private let button = TestButton()
  private let keypad: KeypadChannel
  private let server = ScriptedServerClient()
  private let environment: TokenEnvironment
  private let inbox: Inbox

  init() {
    keypad = KeypadChannel(clock: clock)
    environment = .test(clock)
    inbox = Inbox(in: environment)
  }

  private func request(_ number: Int) throws -> PendingMobileAuthRequest {
    PendingMobileAuthRequest(
      transaction: try #require(TransactionID("00000000-0000-4000-8000-00000000000\(number)")), server: server.id,
      account: AccountID("A"), sentAtMilliseconds: 0, timeToLive: .seconds(600), message: nil,
      deadline: clock.now + .seconds(600))
  }

  private func announce(_ requests: PendingMobileAuthRequest...) {
    inbox.connectivity.set(.connected, to: server.id)
    inbox.replace(requestsOf: server.id, with: requests)
  }

  private func onPanel(_ body: (FrontPanel) async throws -> Void) async throws {
    let panel = FrontPanel(button: button, indicator: TestIndicator(), keypad: keypad, clock: clock)
    let handler = Handler(
      servers: [server], inbox: inbox, panelTasks: PanelTaskQueue(changes: inbox.changes), panel: panel,
      stateStore: MemoryStateStore(), mustEnroll: false, in: environment)
    let running = [Task { await panel.run() }, Task { _ = try? await handler.run() }]
    try await body(panel)
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  /// Yields, and advances the clock by 50 ms now and then, until the condition holds, at most for a minute. The threads
  /// of a busy machine have a millisecond for each step.
  private func pass(
    until what: String, file: String = #fileID, line: Int = #line, _ isDone: () async -> Bool
  ) async throws {
    try await eventually(what, file: file, line: line) {
      for _ in 0..<60 { await Task.yield() }
      if await isDone() { return true }
      clock.advance(by: .milliseconds(50))
      try await Task.sleep(for: .milliseconds(1))
      return false
    }
  }

  private func passUntilReady(_ panel: FrontPanel, file: String = #fileID, line: Int = #line) async throws {
    try await pass(until: "a press counts", file: file, line: line) { await panel.readiness == .counts }
  }

  private func settle() async { for _ in 0..<150 { await Task.yield() } }

  private func hold() {
    button.continuation.yield(.down(.approve, clock.now))
    clock.advance(by: .seconds(1))
    button.continuation.yield(.up(clock.now))
  }

  @Test(
    "A hold that begins before the announcement of another request answers neither", arguments: [0, 500, 1_500, 1_900])
  func holdAcrossTheChange(after milliseconds: Int) async throws {
    try await onPanel { panel in
      let old = try request(1)
      announce(old)
      try await passUntilReady(panel)
      announce(try request(2), old)
      try await pass(until: "the other request on the LED") { await panel.showing == .anotherRequest }
      await settle()
      clock.advance(by: .milliseconds(milliseconds))
      await settle()
      button.continuation.yield(.down(.approve, clock.now))
      await settle()
      for _ in 0..<40 {
        clock.advance(by: .milliseconds(100))
        await settle()
      }
      button.continuation.yield(.up(clock.now))
      await settle()
      #expect(server.delivered.isEmpty)
      try await passUntilReady(panel)
      hold()
      try await pass(until: "an answer") { !server.delivered.isEmpty }
    }
    #expect(server.delivered.map(\.request.pending.transaction) == [try request(2).transaction])
  }

  /// Fails if a press can answer the request that the user has left, or the chosen one before it is announced.
  @Test(
    "A hold after a short press answers only the request that the LED has announced",
    arguments: [0, 100, 700, 1_500, 1_900])
  func holdAfterShortPress(milliseconds: Int) async throws {
    try await onPanel { panel in
      announce(try request(2), try request(1))
      try await passUntilReady(panel)
      button.continuation.yield(.down(.approve, clock.now))
      clock.advance(by: .milliseconds(100))
      button.continuation.yield(.up(clock.now))
      await settle()
      // The end of the time for a second press.
      clock.advance(by: .milliseconds(600))
      try await pass(until: "the other request on the LED") { await panel.showing == .anotherRequest }
      clock.advance(by: .milliseconds(milliseconds))
      await settle()
      button.continuation.yield(.down(.approve, clock.now))
      await settle()
      for _ in 0..<40 {
        clock.advance(by: .milliseconds(100))
        await settle()
      }
      button.continuation.yield(.up(clock.now))
      await settle()
      #expect(server.delivered.isEmpty)
      try await passUntilReady(panel)
      hold()
      try await pass(until: "an answer") { !server.delivered.isEmpty }
    }
    #expect(server.delivered.map(\.request.pending.transaction) == [try request(1).transaction])
  }

  @Test("Digits typed for one request are wiped before the prompt of the next one") func digitsAcrossTheChange()
    async throws
  {
    server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    try await onPanel { panel in
      let first = try request(1)
      announce(try request(2), first)
      // The second request is prompted first. In the middle of the PIN it disappears and the first one appears.
      try await passUntilReady(panel)
      for digit in "135" { keypad.press(.digit(TypedDigit(digit.asciiValue ?? 0))) }
      try await pass(until: "typed digits on the LED") { await panel.showing == .entering }
      announce(first)
      try await pass(until: "the other request on the LED") { await panel.showing == .anotherRequest }
      try await passUntilReady(panel)
      #expect(await panel.showing == .pinWanted)
      for digit in "79" { keypad.press(.digit(TypedDigit(digit.asciiValue ?? 0))) }
      keypad.press(.enter)
      try await pass(until: "the refused PIN on the LED") { await panel.showing == .pinRefused(rule: 4) }
      await settle()
    }
    #expect(server.delivered.isEmpty && server.pins.isEmpty)
  }
}
