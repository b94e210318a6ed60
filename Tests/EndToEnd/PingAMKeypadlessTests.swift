// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import TestAM
import Testing

extension EndToEnd {
  /// Number challenges on a board with a button and without a keypad.
  @Suite struct PingAMWithoutKeypad {
    private static let blinking = "\"one of the choices; no keypad: watch\""
    private static let open = "\"hold if that was what the portal shows\""

    @Test("The number is held or the login denied") func theNumberIsHeldOrTheLoginDenied() async throws {
      try await withPingAMScene(board: QuickBoard.withButton) { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login(.challenge)
        let right = try #require(login.push.number)
        let place = try #require(login.push.candidates.firstIndex(of: right))
        try await hold(afterNumber: place + 1, for: login.token, in: fixture)
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(fixture.am.verify(login.push, type: .challenge) == .isTrue)
        let decided = try await fixture.token.audit(of: login.token).first { $0.kind == "decided" }
        #expect(decided?.detail.hasPrefix("accept by choice, held") == true)

        let other = try await fixture.login(.challenge)
        try await fixture.token.answer(other.token, with: .double, from: other.mark)
        #expect(try await fixture.ending(of: other).hasPrefix("denied"))
        #expect(fixture.am.verify(other.push, type: .challenge) == .isFalse)
      }
    }

    /// Watches the numbers, waits until a press is accepted, and holds the button.
    private func hold(afterNumber place: Int, for transaction: String, in fixture: PingAMFixture) async throws {
      let eyes = try fixture.token.watchLED()
      var mark = 0
      for _ in 1...place {
        // Two nines take 13 s, and a window takes 6 s.
        for said in [Self.blinking, Self.open] {
          try await eyes.output.line(with: said, from: mark)
          mark = eyes.output.mark
        }
      }
      // The panel arms shortly after the LED changes; before that, the answer would be about the phase before.
      try await Task.sleep(for: .milliseconds(500))
      _ = try await eventually("a press counts for \(transaction)") {
        try await fixture.token.pendingRequests().contains { $0.transaction == transaction && $0.pressCounts }
          ? true : nil
      }
      try await fixture.token.hold(seconds: 1)
    }
  }
}
