// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness
import Testing

extension EndToEnd {
  /// Requests that require the PIN, as seen by token, server and portal.
  @Suite struct PINAnswers {
    @Test("The right PIN approves") func theRightPINApproves() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      try await withPINScene { fixture in
        let transaction = try await fixture.askForPIN(callback: sink.address)
        try await fixture.token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated)
        #expect(result.usedAuthenticationAttempts == 1)
        #expect(try await sink.firstCall().members["transaction_id"] == transaction)
        let audit = try await fixture.token.audit(of: transaction)
        #expect(audit.map(\.kind) == ["announced", "opened", "decided", "settled"])
        #expect(audit[2].detail == "accept by PIN")
      }
    }

    @Test("A wrong PIN leaves the request open and is counted everywhere")
    func aWrongPINLeavesTheRequestOpenAndIsCountedEverywhere() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      try await withPINScene { fixture in
        let transaction = try await fixture.askForPIN(callback: sink.address)
        try await fixture.token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
        let open = try await fixture.portal.result(of: transaction)
        #expect(!open.isAuthenticated)
        #expect(open.reason == nil)
        #expect(open.usedAuthenticationAttempts == 1)
        #expect(try await fixture.server.pinFailures() == 1)
        let wrong = try #require(try await fixture.token.status().pin())
        #expect(wrong == .init(account: "alice", previousFailureCount: 1, remainingFailureCount: 2))

        try await fixture.token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated)
        #expect(result.usedAuthenticationAttempts == 2)
        _ = try await sink.firstCall()
        #expect(sink.calls.count == 1)
        #expect(try await fixture.server.pinFailures() == 0)
        #expect(try await fixture.token.status().pin()?.previousFailureCount == 0)
        let kinds = try await fixture.token.audit(of: transaction).map(\.kind)
        #expect(kinds == ["announced", "opened", "decided", "pin-wrong", "opened", "decided", "settled"])
      }
    }

    @Test(
      "A denial needs no PIN",
      arguments: [(UserGesture.double, "declined"), (.notMe, "not_me"), (.cancelKeys, "cancelled")])
    func aDenialNeedsNoPIN(gesture: UserGesture, reason: String) async throws {
      try await withPINScene { fixture in
        let transaction = try await fixture.askForPIN()
        try await fixture.token.answer(transaction, with: gesture)
        #expect(try await fixture.settled(transaction).hasPrefix("denied (\(reason.replacing("_", with: "-")))"))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(!result.isAuthenticated)
        #expect(result.reason == "not_accepted")
        #expect(try await fixture.server.transaction(transaction).denialReason == reason)
        #expect(try await fixture.server.pinFailures() == 0)
        #expect(fixture.server.logged(": PIN ") == 0)
      }
    }

    @Test("A hold accepts nothing that wants the PIN") func aHoldAcceptsNothingThatWantsThePIN() async throws {
      try await withPINScene { fixture in
        let transaction = try await fixture.askForPIN()
        try await fixture.token.asks("PIN wanted")
        try await fixture.token.hold(seconds: 1)
        try await fixture.token.shows("PIN wanted")
        try await expectOnlyOpened(transaction, on: fixture.token)
        #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
        try await fixture.token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      }
    }

    @Test("A request that ends under the fingers takes the digits with it")
    func aRequestThatEndsUnderTheFingersTakesTheDigitsWithIt() async throws {
      let short = """
        [[type]]
        name = "short"
        method = "push_with_pin"
        request_expires_in = 30
        """
      // The digits are still there when the request ends.
      let board = QuickBoard.withKeypad + "\nentry_idle_seconds = 120\n"
      try await withPINScene(types: short, board: board) { fixture in
        let transaction = try await fixture.askForPIN(type: "short")
        try await fixture.token.asks("PIN wanted")
        try await fixture.token.press("1", "3", "5")
        try await fixture.token.shows(TestToken.entering)
        #expect(try await fixture.settled(transaction) == "expired")

        let next = try await fixture.askForPIN()
        try await fixture.token.asks("PIN wanted")
        try await fixture.token.shows(TestToken.newPINRefused) { try await fixture.token.press("8", "9", "enter") }
        try await expectOnlyOpened(next, on: fixture.token)
        #expect(try await fixture.portal.result(of: transaction).reason == nil)
        #expect(fixture.server.logged(": PIN ") == 0)
      }
    }

    @Test("An unplugged keypad wipes what was typed") func anUnpluggedKeypadWipesWhatWasTyped() async throws {
      try await withPINScene { fixture in
        let transaction = try await fixture.askForPIN()
        try await fixture.token.asks("PIN wanted")
        try await fixture.token.press("1", "3", "5", "unplug")
        try await fixture.token.log.line(with: "panel-unavailable request \(transaction)", "keypad")
        try await fixture.token.shows("PIN wanted")
        try await fixture.token.shows(TestToken.newPINRefused) {
          try await fixture.token.press("plug-in", "8", "9", "enter")
        }
        #expect(fixture.server.logged(": PIN ") == 0)

        try await fixture.token.type("13589")
        let outcome = try await fixture.settled(transaction)
        #expect(outcome.hasPrefix("approved, receipt "), "\(outcome)")
        #expect(try await fixture.portal.finalResult(of: transaction).usedAuthenticationAttempts == 1)
        let kinds = try await fixture.token.audit(of: transaction).map(\.kind)
        #expect(kinds == ["announced", "opened", "panel-unavailable", "decided", "settled"])
      }
    }
  }
}

/// What was recorded of a request on the panel is written some seconds after it was shown.
private func expectOnlyOpened(_ transaction: String, on token: TestToken) async throws {
  let kinds = try await eventually("the entries of the request") {
    let kinds = try await token.audit(of: transaction).map(\.kind)
    return kinds.contains("opened") ? kinds : nil
  }
  #expect(kinds == ["announced", "opened"])
}
