// SPDX-License-Identifier: Apache-2.0
import ServerTestSupport
import Testing

@testable import TokenServerStore

@Suite("PostgreSQL over TLS", .timeLimit(.minutes(5)), .mayBlock) struct PostgreSQLTLSTests {
  /// Runs `body` with the URLs of a new database: by its socket, and over TLS.
  private func withDatabase(_ body: (_ url: String, _ secure: String) async throws -> Void) async throws {
    let url = try TestPostgreSQL.newDatabase()
    defer { TestPostgreSQL.drop(url) }
    try await body(url, TestPostgreSQL.overTLS(url))
  }

  @Test("A store uses only connections with TLS") func secure() async throws {
    try await withDatabase { url, secure in
      let store = try Store(PostgreSQLAddress(secure), connections: 2)
      #expect(try await store.read { try $0.openTransactionCount() } == 0)
      #expect(try await store.readBesideRequests { try $0.openTransactionCount() } == 0)
      let areSecure = """
        SELECT count(*) >= 2 AND bool_and(ssl) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
        WHERE datname = current_database() AND client_addr IS NOT NULL
        """
      #expect(try TestPostgreSQL.query(areSecure, in: url).hasPrefix("t"))
      store.close()
    }
  }

  @Test(
    "A database with another name in its certificate, or another issuer, is not used",
    arguments: [("localhost", "127.0.0.1", "does not match host name"), ("tls.crt", "missing.crt", "does not exist")])
  func refused(part: String, other: String, reason: String) async throws {
    try await withDatabase { _, secure in
      let address = try PostgreSQLAddress(secure.replacing(part, with: other))
      let error = #expect(throws: (any Error).self) { _ = try Store(address, connections: 1) }
      #expect("\(String(describing: error))".contains(reason), "\(String(describing: error))")
    }
  }
}
