// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

/// A PIN that is still being verified when its request ends.
@Suite(.timeLimit(.minutes(5))) struct LateEntryTests {
  enum End: CaseIterable {
    case deadline
    /// The request is no longer listed.
    case list
  }

  private let fixture = HandlerFixture()

  init() {
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
  }

  private var outcomes: [String] { fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) }

  /// Types a PIN, and ends the request before the verification has ended.
  /// - Parameter fault: the result of the verification; nil for the right PIN.
  private func answer(_ fault: TokenServerError?, endedBy end: End) async throws {
    let gate = fixture.server.hold("seal")
    if let fault { fixture.server.fail("seal", fault) }
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(10)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("00000"))
      try await eventually("the verification begins") { fixture.server.calls(of: "seal") == 1 }
      switch end {
      case .deadline: fixture.clock.advance(by: .seconds(10))
      case .list: fixture.announce()
      }
      try await eventually("the end of the request") { gate.isCanceled }
      gate.open()
      try await eventually("an outcome") { !outcomes.isEmpty }
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.isEmpty)
    #expect(fixture.panel.prompts.count == 1 && fixture.server.calls(of: "open") == 1)
  }

  /// Fails if the token keeps the account although the vault has wiped it.
  @Test("The last wrong PIN costs the account", arguments: End.allCases) func lastWrongPIN(end: End) async throws {
    // The verification has wiped it.
    fixture.stateStore.failRemoval(with: .notFound(.account(AccountID("A"))))
    try await answer(.pinsUsedUp, endedBy: end)
    #expect(fixture.events.all.contains(.accountLost(AccountID("A"))))
    #expect(fixture.events.all.contains(.rosterChanged))
    #expect(fixture.panel.shown.contains(.mustEnroll))
    #expect(outcomes.count == 1 && outcomes[0].hasPrefix("not approved"))
  }

  @Test("A wrong PIN counts, and is not asked for again", arguments: End.allCases)
  func wrongPIN(end: End) async throws {
    let counts = FailureCounts(max: 3, previous: 1)
    try await answer(.pinIncorrect(counts), endedBy: end)
    #expect(fixture.events.all.contains(.counted(AccountID("A"), counts)))
    #expect(fixture.stateStore.audit.filter { $0.kind == .pinWrong }.map(\.detail) == ["2 of 3 attempts left"])
    #expect(fixture.panel.shown.contains(.pinWrong(remaining: 2)))
    #expect(outcomes.count == 1 && outcomes[0].contains("expired"))
  }

  @Test("The right PIN approves nothing", arguments: End.allCases) func rightPIN(end: End) async throws {
    try await answer(nil, endedBy: end)
    #expect(!fixture.stateStore.audit.contains { $0.kind == .decided })
    #expect(outcomes.count == 1 && outcomes[0].contains("expired"))
  }
}
