// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// What a user without a screen sees of an enrollment that fails.
  @Suite struct EnrollmentFailures {
    private static let meaning =
      "enrollment failed: 1 no network, 2 server not reached, 3 refused, 4 wrong URI, 5 see the log"

    @Test("The LED counts the cause of a failed enrollment") func ledCountsTheCause() async throws {
      try await withScene { fixture in
        let token = TestToken(state: fixture.folder.file("new"), board: "simulated")
        try await token.start()
        defer { token.end() }
        let uri = try await fixture.server.activation(for: "alice")
        let wrong = uri.replacing(/pin_sha256=.*/, with: "pin_sha256=" + String(repeating: "A", count: 43) + "%3D")
        try await enrolling(wrong, on: token, shows: 3, exits: 77)
        try await enrolling("https://example.org/", on: token, shows: 4, exits: 65)
        try await fixture.server.stop()
        try await enrolling(uri, on: token, shows: 2, exits: 69)
        // It is not replaced by "must be enrolled", also if the user looks later.
        for _ in 1...30 {
          try await Task.sleep(for: .milliseconds(200))
          try #require(try await token.led() == Self.meaning)
        }
        try await fixture.server.start()
        try await token.enroll(uri).succeeded()
        try await token.shows("idle, connected")
      }
    }

    @Test("With a clock that is years ahead, the LED says refused, and the message names the expiry")
    func clockAhead() async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let clock = try await wallClock(secondsBack: -30 * 365 * 86_400, in: folder)
      try await withScene { fixture in
        let token = TestToken(
          state: folder.file("new"), board: "simulated", launcher: ["env", "LD_PRELOAD=\(clock)"])
        try await token.start()
        defer { token.end() }
        let outcome = try await enrolling(
          fixture.server.activation(for: "alice"), on: token, shows: 3, exits: 77)
        #expect(outcome.errors.contains("expired"))
      }
    }

    @Test("With an account, a failed enrollment is not shown") func notShownWithAnAccount() async throws {
      try await withScene { fixture in
        try await fixture.token.shows("idle, connected")
        let eyes = try fixture.token.watchLED()
        try await eyes.output.line(with: "meaning")
        let outcome = try await fixture.token.command("enroll", "-", input: "https://example.org/\n")
        #expect(outcome.exit == .code(65))
        #expect(eyes.output.count(of: Self.meaning) == 0)
      }
    }

    @discardableResult
    private func enrolling(
      _ uri: String, on token: TestToken, shows cause: Int, exits code: Int32
    ) async throws -> Outcome {
      let eyes = try token.watchLED()
      try await eyes.output.line(with: "meaning")
      let mark = eyes.output.mark
      let outcome = try await token.command("enroll", "-", "--json", input: uri + "\n")
      #expect(outcome.exit == .code(code))
      // A former cause may still be played when the next enrollment has failed.
      let line = try await eyes.output.line(with: "\"color\":\"magenta\",\"count\":\(cause),", from: mark)
      #expect(line.contains(Self.meaning))
      return outcome
    }
  }
}
