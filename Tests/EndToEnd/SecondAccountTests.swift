// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct SecondAccounts {
    /// Fails if calls that the new account ends are logged as faults of the server.
    @Test("A second account at a server causes no warning, and approves") func noWarning() async throws {
      try await withPINScene(users: ["alice", "bob"]) { fixture in
        // The first line warns of the simulated board.
        let warnings = try fixture.token.log.lines.filter {
          ($0.contains("warning") || $0.contains("error")) && !$0.contains("are simulated")
        }
        #expect(warnings == [])
        #expect(try await fixture.token.accounts().map(\.stage) == ["active", "active"])
        try await fixture.expectApproval(of: "bob", typing: "80261")
      }
    }

    /// An attacker with the SD card has changed the record of an account.
    @Test("A damaged account keeps no other one from approving, and is removed by a command") func damaged()
      async throws
    {
      try await withPINScene(users: ["alice", "bob"]) { fixture in
        let token = fixture.token
        try await token.stop()
        let edit = """
          import sqlite3; card = sqlite3.connect('\(token.state)/vault.sqlite3')
          card.execute("UPDATE accounts SET box = zeroblob(60) WHERE id = 'alice'"); card.commit()
          """
        try await run("python3", ["-c", edit]).succeeded()
        try await token.start()
        try await token.log.line(with: "the record of account alice is damaged")
        try await fixture.expectApproval(of: "bob", typing: "80261")
        #expect(try await token.status().mustEnroll == 1)
        let remedy = "approval-token remove alice"
        #expect(try await token.command("doctor").output.contains(remedy))
        let refused = try await token.command("rename", "alice", "anna")
        #expect(refused.exit != .code(0) && refused.errors.contains(remedy))
        let removal = try await token.command("remove", "alice").succeeded()
        #expect(removal.output.contains("removed alice") && removal.errors.contains("delete the account there, too"))
        #expect(try await token.accounts().map(\.account) == ["bob"])
        try await fixture.expectApproval(of: "bob", typing: "80261")
      }
    }
  }
}
