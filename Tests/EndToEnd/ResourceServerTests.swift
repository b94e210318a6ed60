// SPDX-License-Identifier: Apache-2.0
import Foundation
import FreePorts
import ProgramHarness
import Testing

extension EndToEnd {
  /// Calls to the resource server in `examples`.
  @Suite struct ResourceServers {
    private struct Reply: Decodable, Equatable {
      let user: String
      let amr: [String]
      let received: Int
    }

    private static let program =
      URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "examples/resource-server.py").path

    /// Starts the resource server.
    private func start(at url: String, _ server: TestServer) async throws -> ChildProcess {
      struct Added: Decodable { let clientSecret: String }
      let secret = try await server.command(
        "api-client", "add", "shop", "--introspection", "--no-mobile-authentication", "--no-end-user"
      ).decoded(Added.self).clientSecret
      let files = server.directory
      let resourceServer = try ChildProcess(
        "python3",
        [
          Self.program, "--url", url, "--certificate", files + "/server.pem", "--key", files + "/server.key",
          "--issuer",
          server.address, "--authorities", files + "/ca.pem", "--client", "shop:\(secret)",
        ])
      try await resourceServer.output.line(with: "listening on")
      return resourceServer
    }

    private func expectRefusal(_ outcome: Outcome, saying part: String) {
      #expect(outcome.exit == .code(77) && outcome.errors.contains(part), "\(outcome)")
    }

    @Test("The logged-in user calls a resource server that was allowed at the panel, which knows the user and the PIN")
    func calls() async throws {
      try await withPINScene(configuration: { "[tls]\nauthorities = \"\($0.directory)/ca.pem\"\n" }) { fixture in
        let token = fixture.token
        let url = "https://127.0.0.1:\(try FreePort.reserve())"
        let resourceServer = try await start(at: url, fixture.server)
        defer { resourceServer.send(SIGKILL) }
        expectRefusal(try await token.command("call", "alice", url), saying: "approval-token allow alice \(url)")

        let allow = try token.begin("allow", "alice", url, "--json")
        try await token.asks("very long hold wanted: it cannot be undone")
        try await token.perform(.notMe)
        try await allow.outcome().succeeded()
        expectRefusal(try await token.command("call", "alice", url, "--json"), saying: "\"number\":9010")

        let login = try token.begin("login", "alice")
        try await token.type("13589")
        try await login.outcome().succeeded()
        let got: Reply = try await token.command("call", "alice", url + "/who?x=1").succeeded().decoded()
        #expect(got == Reply(user: "alice", amr: ["pin", "pop"], received: 0))
        let posted: Reply = try await token.command(
          "call", "alice", "PUT", url + "/", "--data", "@-", input: "hello"
        ).succeeded().decoded()
        #expect(posted.received == 5)
        struct Printed: Decodable {
          let status: Int
          let body: String
        }
        let printed: Printed = try await token.command("call", "alice", url, "--json").succeeded().decoded()
        #expect(printed.status == 200 && printed.body.contains("alice"))
        expectRefusal(try await token.command("call", "alice", fixture.server.address), saying: "not a resource server")
        let port = try FreePort.reserve()
        expectRefusal(try await token.command("call", "alice", "https://127.0.0.1:\(port)/"), saying: "may not call")

        try await token.command("logout").succeeded()
        expectRefusal(try await token.command("call", "alice", url), saying: "approval-token login alice")
        #expect(try token.log.count(of: "DPoP ") == 0, "no access token is logged")
      }
    }

    @Test("The resource server refuses a token without its proof") func noProof() async throws {
      try await withPINScene { fixture in
        let url = "https://127.0.0.1:\(try FreePort.reserve())"
        let resourceServer = try await start(at: url, fixture.server)
        defer { resourceServer.send(SIGKILL) }
        for headers in [
          [], ["Authorization: Bearer x"], ["Authorization: DPoP x"], ["Authorization: DPoP x", "DPoP: a.b.c"],
          ["Authorization: DPoP x", "DPoP: e30.e30.AA"], ["Authorization: DPoP x", "DPoP: W10.W10.AA"],
        ] {
          let words = [
            "-sS", "-m", "60", "--cacert", fixture.server.directory + "/ca.pem", "-o", "/dev/null", "-w",
            "%{http_code}",
          ]
          let outcome = try await run("curl", words + headers.flatMap { ["-H", $0] } + [url]).succeeded()
          #expect(outcome.output == "401", "\(headers)")
        }
      }
    }

    @Test("An enrollment can name the resource servers") func enrollment() async throws {
      try await withPINScene { fixture in
        try await fixture.server.addUser("bob")
        let uri = try await fixture.server.activation(for: "bob")
        let refused = try await fixture.token.command("enroll", uri, "--allow-origin", "https://shop.example/")
        #expect(refused.exit == .code(64) && refused.errors.contains("not an origin"))
        let enrollment = try fixture.token.begin(
          "enroll", uri, "--name", "bob", "--allow-origin", "https://Shop.example:443", "--json")
        try await fixture.token.choose("80261")
        try await enrollment.outcome().succeeded()
        struct Account: Decodable {
          let account: String
          let allowedOrigins: [String]?
        }
        let accounts: [Account] = try await fixture.token.command("accounts", "--json").succeeded().decoded()
        #expect(accounts.map(\.account) == ["alice", "bob"])
        #expect(accounts.map(\.allowedOrigins) == [nil, ["https://shop.example"]])
        #expect(
          try await fixture.token.command("allow", "bob", "https://shop.example", "--remove").succeeded().output
            .contains("bob may call no resource server"))
      }
    }
  }
}
