// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// Other keys of the token server than the pepper, as docs/operations.md describes their replacement.
  @Suite struct KeyRotations {
    @Test("A pinned token goes on with a renewed certificate, and with the next key only if it has its pin")
    func certificates() async throws {
      try await withScene { fixture in
        let (server, token) = (fixture.server, fixture.token)
        let pin = try await shell(
          """
          openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out next.key
          openssl pkey -in next.key -pubout -out next.pub
          openssl pkey -in next.key -pubout -outform der | openssl dgst -sha256 -binary | base64
          """, in: server)
        try await server.addUser("bob")
        let encoded = try #require(pin.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
        let uri = "\(try await server.activation(for: "bob"))&pin_sha256=\(encoded)"
        let prepared = TestToken(state: fixture.folder.file("prepared"), board: fixture.folder.file("board.toml"))
        defer { prepared.end() }
        try await prepared.enroll(uri).succeeded()
        try await prepared.startConnected()

        // The same key.
        var marks = (try token.log.mark, try prepared.log.mark)
        try await server.stop()
        try await shell(
          """
          openssl x509 -x509toreq -in server.pem -signkey server.key -copy_extensions copy -out server.csr
          openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -days 825 -copy_extensions copy -out server.new
          mv server.new server.pem
          """, in: server)
        try await server.start()
        try await token.log.line(with: "] connected to", from: marks.0)
        try await prepared.log.line(with: "] connected to", from: marks.1)

        // The next key.
        marks = (try token.log.mark, try prepared.log.mark)
        try await server.stop()
        try await shell(
          """
          openssl x509 -req -in server.csr -force_pubkey next.pub -CA ca.pem -CAkey ca.key -days 825 \
            -copy_extensions copy -out server.new
          mv server.new server.pem
          mv next.key server.key
          """, in: server)
        try await server.start()
        try await prepared.log.line(with: "] connected to", from: marks.1)
        try await token.log.line(with: "not connected to", from: marks.0)
        #expect(try await token.command("pending").exit == .code(69))
        // Another enrollment brings the pin.
        try await token.enroll(try await server.activation(for: "alice"), name: "again").succeeded()
        try await token.log.line(with: "] connected to", from: marks.0)
      }
    }

    @Test("With unique_server_keys, an account that is enrolled again with its PIN gets another server key")
    func serverKey() async throws {
      try await withPINScene { fixture in
        let (server, token) = (fixture.server, fixture.token)
        let shared = try await serverKey(of: "alice", at: server)
        let mark = try token.log.mark
        try await server.stop()
        try server.rewrite { $0.replacing("# unique_server_keys = false", with: "unique_server_keys = true") }
        try await server.start()
        try await token.log.line(with: "] connected to", from: mark)
        #expect(try await serverKey(of: "alice", at: server) == shared)
        try await fixture.expectApproval(typing: "13589")
        try await token.begin("disenroll", "alice", "--json").outcome().succeeded()
        let again = try token.begin("reenroll", "alice", "--json")
        try await token.type("13589")
        try await again.outcome().succeeded()
        #expect(try await serverKey(of: "alice", at: server) != shared)
        try await fixture.expectApproval(typing: "13589")
      }
    }

    /// - Returns: the output without the last line's end.
    @discardableResult
    private func shell(_ script: String, in server: TestServer) async throws -> String {
      try await run("sh", ["-ec", "cd \(server.directory)\n" + script]).succeeded()
        .output.trimmingCharacters(in: .newlines)
    }

    /// The fingerprint of the key for the user's enrollment.
    private func serverKey(of user: String, at server: TestServer) async throws -> String {
      let query = """
        import sqlite3, sys
        print(sqlite3.connect(sys.argv[1]).execute("SELECT server_key FROM profile WHERE user_id = ?", sys.argv[2:]).fetchone()[0])
        """
      return try await run("python3", ["-c", query, server.directory + "/token-server.db", user]).succeeded().output
    }
  }
}
