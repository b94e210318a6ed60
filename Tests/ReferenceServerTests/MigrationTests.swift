// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import SQLite
import Testing

@testable import TokenServerCore
@testable import TokenServerStore

/// Databases of earlier versions.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MigrationTests {
  @Test("A database of the version before authenticators opens with its rows")
  func beforeAuthenticators() async throws {
    let path = NSTemporaryDirectory() + "migration-\(UUID().uuidString).db"
    defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
    let connection = try Connection(path: path)
    try Schema.migrate(connection, with: 3)
    let key = try P256PrivateKey().publicKey
    try connection.run(
      "INSERT INTO device VALUES ('C', 'n', 's', '1', NULL, '{}', ?, ?, 't', x'00', 0, NULL, NULL)", key.x, key.y)
    try connection.execute(
      """
      INSERT INTO profile (client_id, id, user_id, activation, created_at_ms) VALUES ('C', 'P', 'ann', x'00', 0);
      INSERT INTO api_client VALUES ('portal', x'00', 1, 1);
      INSERT INTO access_token VALUES (x'01', 'C', 'P', 5000);
      INSERT INTO mobile_auth_transaction (id, user_id, client_id, profile_id, type, method, callback_uri, nonce,
        request, callback_on_expiry, created_at_ms, expires_at_ms, state)
      VALUES ('t', 'ann', 'C', 'P', 'login', 'push_with_pin', 'https://p/', 'n', x'00', 0, 0, 9000, 'open');
      """)
    let store = try Store(path: path)
    defer { store.close() }
    try await store.read { database in
      let transaction = try #require(try database.transaction("t"))
      #expect(transaction.authenticator == nil && !transaction.hasFallback && transaction.attempts == 0)
      #expect(transaction.portal.isEmpty && transaction.deliveredAt == nil)
      let profile = try #require(try database.profile(ProfileID("P"), on: ClientID("C")))
      // The capabilities in this row are not those of any version: they count as none.
      #expect(profile.authenticators.isEmpty && profile.capabilities == nil)
      #expect(try database.devices().map(\.boardSerial) == [nil])
      #expect(try database.apiClient("portal")?.mayIntrospect == false)
      let token = try #require(try database.validAccessToken([1], now: Timestamp(4000)))
      #expect(token.userID == UserID("ann") && token.origin == nil)
      #expect(try database.validAccessToken([1], now: Timestamp(5000)) == nil)
    }
  }

  @Test("A database that a later version has changed is refused, and unchanged") func laterVersion() throws {
    let temporary = try TemporaryStore()
    let file = try DatabaseFile(temporary.path)
    try file.execute("INSERT INTO grdb_migrations VALUES ('99: later')")
    let error = #expect(throws: StorageUnavailableError.self) { try Store(path: temporary.path) }
    #expect(error?.description.contains("changed by a later version of token-server") == true)
    #expect(try file.number("SELECT COUNT(*) FROM grdb_migrations") == 11)
  }

  @Test("A migration after which a row refers to nothing is rolled back") func danglingRow() throws {
    let path = NSTemporaryDirectory() + "migration-\(UUID().uuidString).db"
    defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
    let connection = try Connection(path: path)
    try Schema.migrate(connection, with: 3)
    try connection.execute(
      "INSERT INTO profile (client_id, id, user_id, activation, created_at_ms) VALUES ('none', 'P', 'ann', x'00', 0)")
    #expect(throws: CorruptRowError.self) { try Schema.migrate(connection) }
    #expect(try connection.rows("SELECT 1 FROM grdb_migrations") { _ in 1 }.count == 3)
  }
}
