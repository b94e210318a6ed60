// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// The PIN is chosen at the panel when the account is activated; the token enforces the server's policy.
  @Suite struct PINActivations {
    @Test func aPINThatThePolicyRefusesIsChosenAnew() async throws {
      let policy = """
        max_pin_attempts = 3
        [application.pin_policy]
        max_repeats = 2
        block_list = ["28064"]
        """
      try await withPINScene(users: [], settings: policy) { scene in
        let token = scene.token
        let enrolment = try token.begin(
          "enroll", try await scene.server.activation(for: "alice"), "--name", "alice", "--json")
        for refused in ["12345", "80007", "28064", "1358"] {
          #expect(try await token.type(refused, when: .newPIN) == TestToken.newPINRefused, "\(refused)")
        }
        try await token.type("13589", when: .newPIN)
        #expect(try await token.type("13598", when: .newPINAgain) == TestToken.newPINRefused)
        #expect(try await scene.server.account()?.pin == "pending")
        try await token.choose("13589")

        #expect(try await enrolment.outcome().exit == .code(0))
        #expect(try await token.accounts() == [.init(account: "alice", stage: "active")])
        #expect(try await scene.portal.devices().map(\.pushAuthenticationEnabled) == [true])
        #expect(try await scene.server.account()?.pin == "active")
        #expect(try await scene.server.pinFailures() == 0)
        #expect(try await token.audit().map(\.kind) == ["pin-set", "enrolled"])
      }
    }

    @Test(arguments: [Wanted.newPIN, .newPINAgain])
    func whoeverCancelsGoesOnWithTheSameURI(wanted: Wanted) async throws {
      try await withPINScene(users: []) { scene in
        let token = scene.token
        let uri = try await scene.server.activation(for: "alice")
        let enrolment = try token.begin("enroll", uri, "--name", "alice")
        if wanted == .newPINAgain { try await token.type("13589", when: .newPIN) }
        try await token.asks(wanted.rawValue)
        try await token.perform(.cancelKeys)

        let outcome = try await enrolment.outcome()
        #expect(outcome.exit == .code(77))
        #expect(outcome.errors.hasSuffix("canceled at the panel"), "\(outcome.errors)")
        try await token.shows("must be enrolled (again)")
        #expect(try await token.accounts().map(\.stage) == ["enrolling"])
        #expect(try await scene.server.account()?.pin == "pending")

        try await token.enrol(uri, name: "alice", choosing: "80261").succeeded()
        #expect(try await token.accounts() == [.init(account: "alice", stage: "active")])
        try await token.shows("idle, connected")
      }
    }

    @Test(arguments: [true, false])
    func whereNobodyCanTypeThatIsSaidAndTheCodeIsNotSpent(running: Bool) async throws {
      try await withPINScene(users: []) { scene in
        let uri = try await scene.server.activation(for: "alice")
        try await scene.token.stop()
        let mute = TestToken(
          state: scene.token.state, board: try scene.folder.write(QuickBoard.withButton, to: "mute.toml"))
        defer { mute.end() }
        if running { try await mute.start() }

        let outcome = try await mute.enrol(uri, name: "alice")
        #expect(outcome.exit == .code(77))
        let reason = "it requires a PIN: enroll while `approval-token serve` runs on a board with a keypad"
        #expect(outcome.errors.contains(reason), "\(outcome.errors)")
        #expect(try await mute.accounts().isEmpty)
        #expect(try await scene.server.account() == nil)

        if running { try await mute.stop() }
        try await scene.token.start()
        try await scene.token.enrol(uri, name: "alice", choosing: "80261").succeeded()
      }
    }
  }
}
