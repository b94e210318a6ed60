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
  }
}
