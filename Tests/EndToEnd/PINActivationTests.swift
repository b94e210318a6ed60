// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// The PIN is chosen at the panel when the account is activated; the token enforces the server's policy.
  @Suite struct PINActivations {
    @Test("A PIN that the policy refuses is chosen again") func aPINThatThePolicyRefusesIsChosenAgain() async throws {
      let policy = """
        max_pin_attempts = 3
        [application.pin_policy]
        max_repeats = 2
        block_list = ["28064"]
        """
      try await withPINScene(users: [], settings: policy) { fixture in
        let token = fixture.token
        let enrollment = try token.begin(
          "enroll", try await fixture.server.activation(for: "alice"), "--name", "alice", "--json")
        for refused in ["12345", "80007", "28064", "1358"] {
          #expect(try await token.type(refused, when: .newPIN) == TestToken.newPINRefused, "\(refused)")
        }
        try await token.type("13589", when: .newPIN)
        #expect(try await token.type("13598", when: .newPINAgain) == TestToken.newPINRefused)
        #expect(try await fixture.server.account()?.pin == "pending")
        try await token.choose("13589")

        #expect(try await enrollment.outcome().exit == .code(0))
        #expect(try await token.accounts() == [.init(account: "alice", stage: "active")])
        #expect(try await fixture.portal.devices().map(\.pushAuthenticationEnabled) == [true])
        #expect(try await fixture.server.account()?.pin == "active")
        #expect(try await fixture.server.pinFailures() == 0)
        #expect(try await token.audit().map(\.kind) == ["pin-set", "enrolled"])
      }
    }

    @Test("After a cancellation the same URI resumes the enrollment", arguments: [Wanted.newPIN, .newPINAgain])
    func afterACancellationTheSameURIResumesTheEnrollment(wanted: Wanted) async throws {
      try await withPINScene(users: []) { fixture in
        let token = fixture.token
        let uri = try await fixture.server.activation(for: "alice")
        let enrollment = try token.begin("enroll", uri, "--name", "alice")
        if wanted == .newPINAgain { try await token.type("13589", when: .newPIN) }
        try await token.asks(wanted.rawValue)
        try await token.perform(.cancelKeys)

        let outcome = try await enrollment.outcome()
        #expect(outcome.exit == .code(77))
        let reason =
          "canceled at the panel. The enrollment is not complete: run the same command with the same URI or typed code "
          + "again, while the code is valid, at most ten minutes after this; later it needs a new one"
        #expect(outcome.errors.hasSuffix(reason), "\(outcome.errors)")
        try await token.shows("must be enrolled (again)")
        #expect(try await token.accounts().map(\.stage) == ["enrolling"])
        let ill = try await token.command("doctor")
        #expect(ill.exit == .code(1))
        #expect(ill.output.contains("BAD   accounts: alice is not enrolled completely: run the same"), "\(ill.output)")
        #expect(try await fixture.server.account()?.pin == "pending")

        try await token.enroll(uri, name: "alice", choosing: "80261").succeeded()
        #expect(try await token.accounts() == [.init(account: "alice", stage: "active")])
        try await token.shows("idle, connected")
      }
    }

    @Test("Without a keypad the error says so, and the code is not used", arguments: [true, false])
    func withoutAKeypadTheErrorSaysSoAndTheCodeIsNotUsed(running: Bool) async throws {
      try await withPINScene(users: []) { fixture in
        let uri = try await fixture.server.activation(for: "alice")
        try await fixture.token.stop()
        let mute = TestToken(
          state: fixture.token.state, board: try fixture.folder.write(QuickBoard.withButton, to: "mute.toml"))
        defer { mute.end() }
        if running { try await mute.start() }

        let outcome = try await mute.enroll(uri, name: "alice")
        #expect(outcome.exit == .code(77))
        let reason = "it requires a PIN: enroll while `approval-token serve` runs on a board with a keypad"
        #expect(outcome.errors.contains(reason), "\(outcome.errors)")
        #expect(try await mute.accounts().isEmpty)
        #expect(try await fixture.server.account() == nil)

        if running { try await mute.stop() }
        try await fixture.token.start()
        try await fixture.token.enroll(uri, name: "alice", choosing: "80261").succeeded()
      }
    }
  }
}
