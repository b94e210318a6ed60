// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import FrontPanel
import MobileAuth
import Synchronization
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct SelfTestTests {
  private struct UnreadableVaultError: Error, CustomStringConvertible {
    let description = "the vault is damaged"
  }

  /// A request handler that may react to a change.
  private final class Loop: WatchdogSubject {
    private let state: Mutex<HandlerState>
    private let reaction: HandlerState?

    init(_ state: HandlerState, reaction: HandlerState?) {
      self.state = Mutex(state)
      self.reaction = reaction
    }

    var handlerState: HandlerState { state.withLock { $0 } }
    func endWait() { if let reaction { state.withLock { $0 = reaction } } }
  }

  private func failures(_ fixture: ServiceFixture) async throws -> [String: String] {
    let response = try await fixture.answer(.selfTest, as: SelfTestResponse.self)
    #expect(response.checks.map(\.subject) == ["vault", "panel", "handler"])
    return Dictionary(
      uniqueKeysWithValues: response.checks.compactMap { check in check.failure.map { (check.subject, $0) } })
  }

  @Test("A service passes without an account and a network, and fails without the lines of the button and the LED")
  func service() async throws {
    let fixture = try ServiceFixture()
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    try await fixture.until(.mustEnroll)
    #expect(try await failures(fixture) == [:])
    let unplug = ControlRequest.simulate(.chip(isConnected: false))
    _ = try await fixture.answer(unplug, as: Done.self)
    try await fixture.until("only the panel fails") { try await Array(failures(fixture).keys) == ["panel"] }
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  @Test(
    "A handler passes if it reacts, or works",
    arguments: [
      (HandlerState.waiting(1), HandlerState.waiting(2), nil), (.waiting(1), .working(until: ManualClock().now), nil),
      (.working(until: ManualClock().now), nil, nil),
      (.absent, .waiting(1), nil), (.waiting(1), nil, "it has not reacted for 10 seconds"),
      (.absent, nil, "it has not reacted for 10 seconds"),
      (.failed, nil, "it does not run because of an error, which the log has"),
    ] as [(HandlerState, HandlerState?, String?)])
  func handler(state: HandlerState, reaction: HandlerState?, failure: String?) async throws {
    let (clock, fixture) = (ManualClock(), try ServiceFixture())
    let test = SelfTest(subject: Loop(state, reaction: reaction), panel: fixture.board.panel, environment: .test(clock))
    {}
    let running = Task { try await test.run() }
    if failure?.hasPrefix("it has not") == true {
      await clock.untilAsleep()
      clock.advance(by: SelfTest.patience)
    }
    #expect(try await running.finished().checks.last == .init(subject: "handler", failure: failure))
  }

  @Test("A vault that cannot be read fails") func vault() async throws {
    let fixture = try ServiceFixture()
    let test = SelfTest(
      subject: Loop(.working(until: ManualClock().now), reaction: nil), panel: fixture.board.panel,
      environment: .test(ManualClock())
    ) { throw UnreadableVaultError() }
    let result = try await test.run()
    #expect(result.checks.first == .init(subject: "vault", failure: "the vault is damaged") && !result.passed)
  }
}
