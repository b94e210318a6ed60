// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness
import Testing

extension EndToEnd {
  /// Accounts whose keys or push enrollment the portal has removed.
  @Suite struct Reenrollment {
    @Test(
      "The PIN enrolls an account again, without an activation code",
      arguments: ["disableMobileAuthentication", "disablePushAuthentication"])
    func pinEnrollsAgain(removal: String) async throws {
      try await withPINScene { fixture in
        let token = fixture.token
        #expect(try await token.command("reenroll", "alice").exit == .code(77))
        let mark = try token.log.mark
        _ = try await fixture.portal.call("POST", "/users/alice/devices/\(fixture.device)/\(removal)")
        try await token.log.line(with: "disenrolled", from: mark)
        _ = try await eventually("the account must be enrolled again") {
          try await token.accounts() == [.init(account: "alice", stage: "must-enroll-again")] ? true : nil
        }
        // Also after a restart.
        try await token.kill9()
        try await token.start()

        let again = try token.begin("reenroll", "alice", "--json")
        try await token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
        #expect(try await fixture.server.pinFailures() == 1)
        try await token.type("13589")
        let outcome = try await again.outcome().succeeded()
        // The loss of push alone leaves the keys.
        #expect(outcome.errors.contains("exchanging keys") == (removal == "disableMobileAuthentication"))
        #expect(outcome.errors.contains("enrolling for push"))
        try await token.log.line(with: "] connected to")
        #expect(try await token.accounts() == [.init(account: "alice", stage: "active")])
        try await fixture.expectApproval(typing: "13589")
      }
    }

    @Test("Push is lost first, and then the keys: the PIN enrolls again with new ones") func keysAfterPush()
      async throws
    {
      try await withPINScene { fixture in
        let token = fixture.token
        let mark = try token.log.mark
        let path = "/users/alice/devices/\(fixture.device)"
        _ = try await fixture.portal.call("POST", path + "/disablePushAuthentication")
        try await token.log.line(with: "disenrolled", from: mark)
        _ = try await fixture.portal.call("POST", path + "/disableMobileAuthentication")
        let again = try token.begin("reenroll", "alice", "--json")
        try await token.type("13589")
        let outcome = try await again.outcome().succeeded()
        #expect(outcome.errors.contains("exchanging keys"))
        try await fixture.expectApproval(typing: "13589")
      }
    }

    @Test(
      "A user gives up the keys, or push alone, and regains them with the PIN",
      arguments: [[], ["--push-only"]])
    func disenrollment(options: [String]) async throws {
      try await withPINScene { fixture in
        let token = fixture.token
        try await token.begin(["disenroll", "alice", "--json"] + options).outcome().succeeded()
        #expect(try await token.accounts() == [.init(account: "alice", stage: "must-enroll-again")])
        let device = try #require(try await fixture.portal.devices().first)
        #expect(device.mobileAuthenticationEnabled == !options.isEmpty && !device.pushAuthenticationEnabled)
        #expect(try await token.audit().contains { $0.kind == "disenrolled" && $0.detail.hasSuffix("by a command") })
        let again = try token.begin("reenroll", "alice", "--json")
        try await token.type("13589")
        let outcome = try await again.outcome().succeeded()
        #expect(outcome.errors.contains("exchanging keys") == options.isEmpty)
        try await fixture.expectApproval(typing: "13589")

        // Without its server, nothing is given up.
        try await fixture.server.stop()
        let refused = try await token.begin(["disenroll", "alice", "--json"] + options).outcome()
        #expect(refused.exit == .code(69) && refused.errors.contains("\"number\":9001"), "\(refused)")
        #expect(try await token.accounts() == [.init(account: "alice", stage: "active")])
      }
    }

    @Test("The PIN of a re-enrollment makes the finger usable after power-on") func fingerAfterPowerOn() async throws {
      try await withPINScene(
        settings: Fingerprints.settings, types: Fingerprints.types,
        configuration: { _ in "[authenticators]\nsimulated_fingerprint = \"finger\"\n" }
      ) { fixture in
        let token = fixture.token
        try await token.registerFinger { _ in try await token.present("index") }
        try await token.kill9()
        try await token.startConnected()
        try await token.command("disenroll", "alice").succeeded()
        let again = try token.begin("reenroll", "alice")
        // What a wrong PIN decrypts is no token.
        try await token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
        try await token.type("13589")
        try await again.outcome().succeeded()
        let transaction = try await fixture.askForPIN(type: "transfer")
        try await token.present("index")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: transaction).authenticationMethod == "push_with_fingerprint")
      }
    }

    @Test("The last wrong PIN of a re-enrollment removes the account") func wrongPINs() async throws {
      try await withPINScene(settings: "max_pin_attempts = 2") { fixture in
        let token = fixture.token
        let mark = try token.log.mark
        _ = try await fixture.portal.call("POST", "/users/alice/devices/\(fixture.device)/disableMobileAuthentication")
        try await token.log.line(with: "disenrolled", from: mark)
        let again = try token.begin("reenroll", "alice", "--json")
        try await token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
        try await token.type(EndToEndFixture.wrongPIN, until: "must be enrolled (again)")
        let outcome = try await again.outcome()
        #expect(outcome.exit == .code(77) && outcome.errors.contains("\"number\":9003"), "\(outcome)")
        #expect(try await token.accounts().isEmpty)
      }
    }
  }
}
