// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
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
        let login = try await loginWithHold(in: fixture)
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

    /// A login for whose number the button was held in time. On a busy machine a hold can come when another number is
    /// blinked: such a login does not count, and another one takes its place.
    private func loginWithHold(in fixture: PingAMFixture) async throws -> PingAMFixture.Login {
      for _ in 1...5 {
        // From before the first number on.
        let eyes = try fixture.token.watchLED()
        try await eyes.output.line(with: "meaning")
        let login = try await fixture.login(.challenge)
        if try await hold(for: login, watching: eyes, in: fixture) { return login }
        let decided = "decided request \(login.token)"
        if try !fixture.token.log.lines.contains(where: { $0.contains(decided) }) {
          try await fixture.token.answer(login.token, with: .double, from: login.mark)
        }
        _ = try await fixture.ending(of: login)
      }
      throw OutputTimeoutError(description: "a hold after the right number, of five")
    }

    /// Watches the numbers, waits until a press is accepted, and holds the button.
    /// - Returns: false if the hold came too late or had no effect.
    private func hold(
      for login: PingAMFixture.Login, watching eyes: ControlCall, in fixture: PingAMFixture
    ) async throws -> Bool {
      let right = try #require(login.push.number)
      let place = try #require(login.push.candidates.firstIndex(of: right))
      var mark = 0
      for _ in 0...place {
        // Two nines take 13 s, and a window takes 6 s.
        for said in [Self.blinking, Self.open] {
          try await eyes.output.line(with: said, from: mark)
          mark = 1 + (eyes.output.lines.dropFirst(mark).firstIndex { $0.contains(said) } ?? mark)
        }
      }
      // The panel arms shortly after the LED changes; before that, the answer would be about the phase before.
      try await Task.sleep(for: .milliseconds(500))
      _ = try await eventually("a press counts for \(login.token)") {
        try await fixture.token.pendingRequests().contains { $0.transaction == login.token && $0.pressCounts }
          ? true : nil
      }
      try await fixture.token.hold(seconds: 1)
      let isDecided =
        (try? await fixture.token.log.line(
          with: "decided request \(login.token)", from: login.mark, within: .seconds(10))) != nil
      return isDecided && !eyes.output.lines.dropFirst(mark).contains { $0.contains(Self.blinking) }
    }
  }
}
