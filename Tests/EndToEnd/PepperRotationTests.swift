// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// Rotation of the token server's pepper.
  @Suite struct PepperRotations {
    @Test("After a rotation portals, tokens and codes go on; a portal that was away is refused when it is retired")
    func rotation() async throws {
      try await withScene { fixture in
        let (server, token) = (fixture.server, fixture.token)
        struct Added: Decodable { let clientSecret: String }
        let secret = try await server.command("api-client", "add", "away").decoded(Added.self).clientSecret
        let away = Portal(
          base: { server.address }, authority: server.directory + "/ca.pem", credentials: "away:\(secret)")
        try await expectApproval(in: fixture)
        try await server.addUser("bob")
        let uri = try await server.activation(for: "bob")

        let mark = try token.log.mark
        try await server.stop()
        try await server.command("pepper", "rotate")
        try await server.start()
        try await token.log.line(with: "] connected to", from: mark)
        #expect(try await away.call("GET", "/authenticate/user/alice/enabled").status == 200)
        try await expectApproval(in: fixture)
        let other = TestToken(state: fixture.folder.file("other"), board: "simulated")
        try await other.enroll(uri).succeeded()
        #expect(try await server.devices().count == 2)
        try await server.command("pepper", "retire")

        try await server.stop()
        try await server.command("pepper", "rotate")
        try await server.start()
        try await expectApproval(in: fixture)
        let refused = try await run(Program.server, ["pepper", "retire", "--directory", server.directory])
        #expect(refused.exit == .code(1) && refused.errors.contains("needed by portals: away;"), "\(refused.errors)")
        try await server.command("pepper", "retire", "--force")
        #expect(try await away.call("GET", "/authenticate/user/alice/enabled").status == 401)
        try await expectApproval(in: fixture)
      }
    }

    private func expectApproval(in fixture: EndToEndFixture) async throws {
      let transaction = try await fixture.ask()
      try await fixture.token.log.line(with: "opened request \(transaction)")
      try await fixture.token.answer(transaction, with: .hold)
      #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated)
    }
  }
}
