// SPDX-License-Identifier: Apache-2.0
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  /// Tasks that are started at the command line and finished at the panel: log in, log out, forget.
  @Suite struct PINSessions {
    private struct Session: Decodable, Equatable {
      let account: String?
      let serverNotified: Bool?

      private enum CodingKeys: String, CodingKey {
        case account, serverNotified
      }
    }

    @Test("The user who types the PIN is logged in until the next user is")
    func userWhoTypesThePINIsLoggedInUntilTheNextUserIs() async throws {
      try await withPINScene(users: ["alice", "bob"]) { fixture in
        let token = fixture.token
        let login = try token.begin("login", "alice", "--json")
        try await token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
        #expect(try await fixture.server.pinFailures() == 1)
        #expect(try await token.status().pin()?.remainingFailureCount == 2)
        #expect(try await token.status().loggedIn == nil)
        try await token.type("13589")
        let session: Session = try await login.outcome().succeeded().decoded()
        #expect(session == Session(account: "alice", serverNotified: nil))
        #expect(try await fixture.server.pinFailures() == 0)
        #expect(try await token.status().loggedIn == "alice")
        #expect(try await token.status().pin()?.remainingFailureCount == 3, "the PIN was right")

        let second = try token.begin("login", "bob", "--json")
        try await token.shows("PIN wanted")
        #expect(try await token.status().loggedIn == nil, "the former user is logged out before a PIN is typed")
        try await token.type("80261")
        let next: Session = try await second.outcome().succeeded().decoded()
        #expect(next == Session(account: "bob", serverNotified: true))
        #expect(try await token.status().loggedIn == "bob")

        let out: Session = try await token.command("logout", "--json").succeeded().decoded()
        #expect(out == Session(account: nil, serverNotified: true))
        #expect(try await token.status().loggedIn == nil)
        let again: Session = try await token.command("logout", "--json").succeeded().decoded()
        #expect(again == Session(account: nil, serverNotified: nil))
        let kinds = try await token.audit().filter { $0.kind.hasPrefix("logged-") }.map { [$0.kind, $0.account] }
        #expect(
          kinds == [["logged-in", "alice"], ["logged-out", "alice"], ["logged-in", "bob"], ["logged-out", "bob"]])
      }
    }

    @Test("A login that is canceled costs nothing") func aLoginThatIsCanceledCostsNothing() async throws {
      try await withPINScene { fixture in
        let login = try fixture.token.begin("login")
        try await fixture.token.asks("PIN wanted")
        try await fixture.token.press("1", "3", "escape", "escape")
        #expect(try await login.outcome().exit == .code(77))
        #expect(try await fixture.server.pinFailures() == 0)
        try await fixture.token.shows("idle, connected")
      }
    }

    @Test("The limit is the same for a login") func theLimitIsTheSameForALogin() async throws {
      try await withPINScene(settings: "max_pin_attempts = 2") { fixture in
        let login = try fixture.token.begin("login", "--json")
        try await fixture.token.type("24601")
        try await fixture.token.type("24602")
        let outcome = try await login.outcome()
        #expect(outcome.exit == .code(77))
        #expect(outcome.errors.contains("\"number\":9003"))
        #expect(try await fixture.token.accounts().isEmpty)
        try await fixture.token.shows("must be enrolled (again)")
        #expect(try await fixture.server.account() == nil)
      }
    }

    @Test("Only a very long hold forgets") func onlyAVeryLongHoldForgets() async throws {
      try await withPINScene { fixture in
        let forget = try fixture.token.begin("forget", "alice", "--json")
        try await fixture.token.asks("very long hold wanted: it cannot be undone")
        try await fixture.token.perform(.hold)
        #expect(forget.isRunning)
        // On a busy machine two presses may be too far apart for a double press.
        for _ in 1...3 where forget.isRunning {
          try await fixture.token.perform(.double)
          _ = try? await forget.exit(within: .seconds(10))
        }
        #expect(try await forget.exit() == .code(77))
        #expect(try await fixture.token.accounts().map(\.stage) == ["active"])
        #expect(try await fixture.server.pinFailures() == 0)

        // After the command was interrupted, the panel task ends too, and a long hold has another meaning.
        let abandoned = try fixture.token.begin("forget", "alice")
        try await fixture.token.shows("very long hold wanted: it cannot be undone")
        abandoned.send(SIGINT)
        try await abandoned.exit()
        try await fixture.token.shows("idle, connected")
        try await fixture.token.perform(.notMe)
        #expect(try await fixture.token.accounts().map(\.stage) == ["active"])

        let meant = try fixture.token.begin("forget", "alice", "--json")
        try await fixture.token.asks("very long hold wanted: it cannot be undone")
        try await fixture.token.perform(.notMe)
        struct Removal: Decodable {
          let serverNotified: Bool
          private enum CodingKeys: String, CodingKey {
            case serverNotified
          }
        }
        let removal: Removal = try await meant.outcome().succeeded().decoded()
        #expect(removal.serverNotified)
        #expect(try await fixture.token.accounts().isEmpty)
        #expect(try await fixture.portal.devices().isEmpty)
        try await fixture.expectRemoval()
        try await fixture.token.shows("must be enrolled (again)")
      }
    }
  }
}
