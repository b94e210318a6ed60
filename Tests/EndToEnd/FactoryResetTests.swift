// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct FactoryResets {
    private struct Response: Decodable {
      let removed: [String]
      let notNotified: [String]
    }

    @Test("A factory reset removes the device at its server, and the next start is that of a new token")
    func newToken() async throws {
      try await withPINScene { fixture in
        let token = fixture.token
        let service = try token.running
        let reset = try token.begin("factory-reset", "--json")
        try await token.asks("very long hold wanted: it cannot be undone")
        try await token.perform(.notMe)
        let response: Response = try await reset.outcome().succeeded().decoded()
        #expect(response.removed == ["alice"] && response.notNotified.isEmpty)
        #expect(try await service.exit() == .code(85))
        #expect(try await fixture.portal.devices().isEmpty)
        for file in ["vault.sqlite3", "vault.sqlite3-wal", "device-secret", "factory-reset"] {
          #expect(access("\(token.state)/\(file)", F_OK) != 0, "\(file)")
        }
        try await token.start()
        #expect(try await token.accounts().isEmpty)
        try await token.shows("must be enrolled (again)")
      }
    }

    @Test("A killed token finishes its factory reset at the next start") func afterKill() async throws {
      try await withPINScene { fixture in
        let token = fixture.token
        // The power fails when the reset has begun, or has ended already.
        try await fixture.server.stop()
        let reset = try token.begin("factory-reset", "--json")
        try await token.asks("very long hold wanted: it cannot be undone")
        try await token.perform(.notMe)
        let marker = "\(token.state)/factory-reset"
        _ = try await eventually("the reset begins") {
          try access(marker, F_OK) == 0 || !token.running.isRunning ? true : nil
        }
        try await token.kill9()
        _ = try await reset.outcome()
        let accounts = try await token.command("accounts", "--json")
        // If the service was killed after it had removed the vault, there is nothing to refuse.
        let isVaultThere = access("\(token.state)/vault.sqlite3", F_OK) == 0
        #expect(accounts.exit == .code(isVaultThere ? 69 : 0))
        try await token.start()
        #expect(try await token.accounts().isEmpty && access(marker, F_OK) != 0)
      }
    }
  }
}
