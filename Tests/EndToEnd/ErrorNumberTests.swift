// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// Each number of the error catalog that a user or a program at the token can meet, provoked once. The numbers of
  /// authenticators, 9015, 9022, 9027, 9028 and 10004 to 10008, are in `Authenticators` and `Events`; others are in
  /// `ErrorNumberTests+Authenticators`.
  @Suite struct ErrorNumbers {
    private static let brief = """
      [[type]]
      name = "brief"
      method = "push"
      request_expires_in = 30
      """

    private static let newerServer =
      URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/newer-server").path

    /// Waits until `events` has this event with this number.
    func expect(_ event: String, _ number: Int, at token: TestToken) async throws {
      _ = try await eventually("the event \(event) with \(number)") {
        let lines = try await token.command("events", "--json").succeeded().output.split(separator: "\n")
        let found = lines.contains { $0.contains("\"event\":\"\(event)\"") && $0.contains("\"code\":\(number),") }
        return found ? true : nil
      }
    }

    func expectRefusal(_ outcome: Outcome, _ number: Int, exits code: Int32 = 77) {
      #expect(outcome.exit == .code(code) && outcome.errors.contains("\"number\":\(number)"), "\(outcome)")
    }

    @Test("9000: the board has no network") func networkConnectivityFailure() async throws {
      try await withScene { fixture in
        try await fixture.token.stop()
        let alone = TestToken(
          state: fixture.token.state, board: fixture.folder.file("board.toml"),
          launcher: ["unshare", "--user", "--map-root-user", "--net"])
        defer { alone.end() }
        try await alone.start()
        try await expect("disconnected", 9000, at: alone)
        try await alone.stop()
      }
    }

    @Test("9001: the server is not reachable") func serverNotReachable() async throws {
      try await withScene { fixture in
        try await fixture.server.stop()
        try await expect("disconnected", 9001, at: fixture.token)
        expectRefusal(try await fixture.token.command("pending", "--json"), 9001, exits: 69)
      }
    }

    @Test("9002: the device was removed") func deviceDeregistered() async throws {
      try await withScene { fixture in
        try await fixture.server.command("device", "delete", fixture.device)
        try await expect("must-enroll", 9002, at: fixture.token)
      }
    }

    @Test("9003: the user was removed") func userDeregistered() async throws {
      try await withScene { fixture in
        try await fixture.server.command("user", "delete", "alice")
        try await expect("must-enroll", 9003, at: fixture.token)
      }
    }

    @Test("9004: the server is too new for this token") func outdatedApp() async throws {
      let proxy = try DisconnectingProxy()
      defer { proxy.close() }
      try await withScene(behind: proxy) { fixture in
        try await fixture.token.stop()
        let directory = fixture.server.directory
        let newer = try ChildProcess(
          Self.newerServer,
          [directory + "/server.pem", directory + "/server.key", "\(proxy.target)"])
        let port = try await newer.output.line(with: "port ")
        proxy.redirect(to: try #require(Int(port.dropFirst("port ".count))))
        try await fixture.token.start()
        try await expect("stopped", 9004, at: fixture.token)
        #expect(try await fixture.token.accounts().map(\.stage) == ["active"])
      }
    }

    @Test("9006: the user canceled; 9009: the PIN was wrong; 9010: the user is not logged in") func entries()
      async throws
    {
      try await withPINScene { fixture in
        let (token, origin) = (fixture.token, "https://localhost:9")
        let canceled = try await fixture.askForPIN()
        try await token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
        try await expect("challenge", 9009, at: token)
        try await token.answer(canceled, with: .cancelKeys)
        try await expect("request-failed", 9006, at: token)

        let allowing = try token.begin("allow", "alice", origin)
        try await token.asks("very long hold wanted: it cannot be undone")
        try await token.perform(.notMe)
        try await allowing.outcome().succeeded()
        expectRefusal(try await token.command("call", "alice", origin + "/", "--json"), 9010)
      }
    }

    @Test("9017: the server takes no enrollments; 9018: the user has another device") func enrollments() async throws {
      try await withScene { fixture in
        let other = TestToken(state: fixture.folder.file("other"), board: "simulated")
        for (change, number) in [
          (("\"multiple\"", "\"single\""), 9018), (("enrollment = true", "enrollment = false"), 9017),
        ] {
          try await fixture.server.stop()
          try fixture.server.rewrite { $0.replacing(change.0, with: change.1) }
          try await fixture.server.start()
          let uri = try await fixture.server.activation(for: "alice")
          expectRefusal(try await other.enroll(uri), number)
        }
      }
    }

    @Test("9020: the user was disenrolled") func userDisenrolled() async throws {
      try await withScene { fixture in
        _ = try await fixture.portal.call(
          "POST", "/users/alice/devices/\(fixture.device)/disableMobileAuthentication")
        try await expect("must-enroll", 9020, at: fixture.token)
      }
    }

    @Test("9029: the request has ended before the answer") func alreadyHandled() async throws {
      let proxy = try DisconnectingProxy()
      defer { proxy.close() }
      try await withScene(behind: proxy) { fixture in
        let transaction = try await fixture.ask()
        try await fixture.token.log.line(with: "opened request \(transaction)")
        proxy.cut(refusing: true)
        try await fixture.token.answer(transaction, with: .hold)
        // As another answer would.
        try await fixture.server.edit(
          "UPDATE mobile_auth_transaction SET state = 'rejected', ended_at_ms = created_at_ms")
        proxy.mend()
        try await expect("request-failed", 9029, at: fixture.token)
      }
    }

    @Test("10001: the server does not know the device's client credentials") func configurationInvalid() async throws {
      try await withScene { fixture in
        try await fixture.token.stop()
        // The base point of P-256 in place of the device's key.
        let (x, y) = (
          "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
          "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
        )
        try await fixture.server.edit("UPDATE device SET key_x = x'\(x)', key_y = x'\(y)'")
        try await fixture.token.start()
        try await expect("stopped", 10001, at: fixture.token)
        #expect(try await fixture.token.accounts().map(\.stage) == ["active"])
      }
    }

    @Test("10003: removed only here; 10009: logged out only here") func unreported() async throws {
      try await withPINScene { fixture in
        let token = fixture.token
        let login = try token.begin("login", "alice")
        try await token.type("13589")
        try await login.outcome().succeeded()
        try await fixture.server.stop()
        for (words, number) in [(["logout"], 10009), (["remove", "alice"], 10003)] {
          let outcome = try await token.begin(words + ["--json"]).outcome().succeeded()
          #expect(outcome.output.contains("\"number\":\(number)"), "\(outcome)")
        }
      }
    }

    @Test("10013: the request has expired") func notFound() async throws {
      try await withScene(types: Self.brief) { fixture in
        _ = try await fixture.ask(type: "brief")
        try await expect("request-failed", 10013, at: fixture.token)
      }
    }

    @Test("10018: the token cannot handle the request, and denies it") func notHandleable() async throws {
      try await withScene { fixture in
        try await fixture.token.stop()
        let transaction = try await fixture.ask()
        try await fixture.server.edit(
          """
          UPDATE mobile_auth_transaction
          SET request = CAST(replace(CAST(request AS TEXT), '"v":1', '"v":9') AS BLOB)
          """)
        try await fixture.token.start()
        try await expect("request-failed", 10018, at: fixture.token)
        #expect(try await fixture.portal.finalResult(of: transaction).reason == "not_accepted")
      }
    }
  }
}
