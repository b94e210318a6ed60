// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// Requests that require the PIN, as seen by token, server and portal.
  @Suite struct PINAnswers {
    @Test func theRightPINApproves() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      try await withPINScene { scene in
        let transaction = try await scene.askForPIN(callback: sink.address)
        try await scene.token.type("13589")
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await scene.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated)
        #expect(result.usedAuthenticationAttempts == 1)
        #expect(try await sink.firstCall().members["transaction_id"] == transaction)
        let audit = try await scene.token.audit(of: transaction)
        #expect(audit.map(\.kind) == ["announced", "opened", "decided", "settled"])
        #expect(audit[2].detail == "accept by PIN")
      }
    }

    @Test func aWrongPINLeavesTheRequestOpenAndIsCountedEverywhere() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      try await withPINScene { scene in
        let transaction = try await scene.askForPIN(callback: sink.address)
        try await scene.token.type(Scene.wrongPIN, until: TestToken.pinWrong)
        let open = try await scene.portal.result(of: transaction)
        #expect(!open.isAuthenticated)
        #expect(open.reason == nil)
        #expect(open.usedAuthenticationAttempts == 1)
        #expect(try await scene.server.pinFailures() == 1)
        let wrong = try #require(try await scene.token.status().pin())
        #expect(wrong == .init(account: "alice", previousFailureCount: 1, remainingFailureCount: 2))

        try await scene.token.type("13589")
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await scene.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated)
        #expect(result.usedAuthenticationAttempts == 2)
        _ = try await sink.firstCall()
        #expect(sink.calls.count == 1)
        #expect(try await scene.server.pinFailures() == 0)
        #expect(try await scene.token.status().pin()?.previousFailureCount == 0)
        let kinds = try await scene.token.audit(of: transaction).map(\.kind)
        #expect(kinds == ["announced", "opened", "decided", "pin-wrong", "opened", "decided", "settled"])
      }
    }

    @Test(arguments: [(Act.double, "declined"), (.notMe, "not_me"), (.cancelKeys, "cancelled")])
    func aDenialNeedsNoPIN(act: Act, reason: String) async throws {
      try await withPINScene { scene in
        let transaction = try await scene.askForPIN()
        try await scene.token.answer(transaction, with: act)
        #expect(try await scene.settled(transaction).hasPrefix("denied (\(reason.replacing("_", with: "-")))"))
        let result = try await scene.portal.finalResult(of: transaction)
        #expect(!result.isAuthenticated)
        #expect(result.reason == "not_accepted")
        #expect(try await scene.server.transaction(transaction).denialReason == reason)
        #expect(try await scene.server.pinFailures() == 0)
        #expect(scene.server.logged(": PIN ") == 0)
      }
    }

    @Test func aHoldAcceptsNothingThatWantsThePIN() async throws {
      try await withPINScene { scene in
        let transaction = try await scene.askForPIN()
        try await scene.token.asks("PIN wanted")
        try await scene.token.hold(seconds: 1)
        try await scene.token.shows("PIN wanted")
        #expect(try await scene.token.audit(of: transaction).map(\.kind) == ["announced", "opened"])
        #expect(try await scene.portal.result(of: transaction).isAuthenticated == false)
        try await scene.token.type("13589")
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
      }
    }

    @Test func aRequestThatEndsUnderTheFingersTakesTheDigitsWithIt() async throws {
      let short = """
        [[type]]
        name = "short"
        method = "push_with_pin"
        request_expires_in = 20
        """
      try await withPINScene(types: short) { scene in
        let transaction = try await scene.askForPIN(type: "short")
        try await scene.token.asks("PIN wanted")
        try await scene.token.press("1", "3", "5")
        try await scene.token.shows(TestToken.entering)
        #expect(try await scene.settled(transaction) == "expired")

        let next = try await scene.askForPIN()
        try await scene.token.asks("PIN wanted")
        try await scene.token.shows(TestToken.newPINRefused) { try await scene.token.press("8", "9", "enter") }
        #expect(try await scene.token.audit(of: next).map(\.kind) == ["announced", "opened"])
        #expect(try await scene.portal.result(of: transaction).reason == nil)
        #expect(scene.server.logged(": PIN ") == 0)
      }
    }

    @Test func anUnpluggedKeypadWipesWhatWasTyped() async throws {
      try await withPINScene { scene in
        let transaction = try await scene.askForPIN()
        try await scene.token.asks("PIN wanted")
        try await scene.token.press("1", "3", "5", "unplug")
        try await scene.token.log.line(with: "panel-unavailable request \(transaction)", "keypad")
        try await scene.token.shows("PIN wanted")
        try await scene.token.shows(TestToken.newPINRefused) {
          try await scene.token.press("plug-in", "8", "9", "enter")
        }
        #expect(scene.server.logged(": PIN ") == 0)

        try await scene.token.type("13589")
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await scene.portal.finalResult(of: transaction).usedAuthenticationAttempts == 1)
        let kinds = try await scene.token.audit(of: transaction).map(\.kind)
        #expect(kinds == ["announced", "opened", "panel-unavailable", "decided", "settled"])
      }
    }
  }
}
