// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import Foundation
import Logging
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerStore

extension TemporaryStore {
  var hasher: KeyedHasher { KeyedHasher(SecretBytes(copying: [UInt8](repeating: 1, count: 32))) }

  /// Its limits do not regain attempts.
  func makeActivationService(
    log: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  ) -> ActivationService {
    let announcer = ServerAnnouncer(hub: EventHub(), callbacks: AsyncSignal(), log: log)
    let clock = ServerClock { Timestamp(0) }
    return ActivationService(
      store: store, hasher: hasher, keyring: ServerKeyring(store: store.records, hasher: hasher), clock: clock,
      announcer: announcer,
      expiry: ExpiryTimer(store: store, announcer: announcer, clock: clock, retentionHours: 1), fleetLimit: 10,
      uptime: { .zero })
  }
}

/// Invalid rows in every table that the server reads.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PoisonedRowTests {
  /// A statement that corrupts a row, or all rows, of its table.
  static let poisons = [
    "UPDATE mobile_auth_transaction SET method = 'telepathy'",
    "UPDATE mobile_auth_transaction SET state = 'open', method = 'x', expires_at_ms = -9223372036854775808",
    "UPDATE mobile_auth_transaction SET expires_at_ms = 9223372036854775807, created_at_ms = -1",
    "UPDATE mobile_auth_transaction SET former_requests = x'00', pin_attempts = 9223372036854775807",
    "UPDATE mobile_auth_transaction SET callback_uri = 'http://portal:65536/'",
    """
    INSERT INTO callback (transaction_id, url, attempts, created_at_ms, due_at_ms)
    VALUES ('p1', 'http://127.0.0.1:65536/', 0, 0, 0)
    """,
    """
    INSERT INTO callback (transaction_id, url, attempts, created_at_ms, due_at_ms)
    VALUES ('p2', 'http://127.0.0.1:1/', 9223372036854775807, 0, -9223372036854775808)
    """,
    """
    INSERT INTO callback (transaction_id, url, attempts, created_at_ms, due_at_ms)
    VALUES ('p3', '', -1, 0, 9223372036854775807)
    """,
    "INSERT INTO outbox (client_id, event) VALUES ('x', x'FF')",
    "INSERT INTO outbox (client_id, event) VALUES ('x', CAST('{\"kind\":\"unheard-of\"}' AS BLOB))",
    """
    INSERT INTO verdict (client_id, idempotency_key, request_hash, status, body, created_at_ms)
    VALUES ('x', 'x', x'', 99999, x'', -9223372036854775808)
    """,
    "UPDATE device SET key_x = x'00', last_login_at_ms = -9223372036854775808 WHERE name = 'victim'",
    "UPDATE profile SET certificate = x'00', created_at_ms = 9223372036854775807 WHERE user_id = 'victim'",
    """
    INSERT OR REPLACE INTO knowledge (client_id, profile_id, public_key, refresh_token_hash, state, failures, proposed_at_ms)
    SELECT client_id, id, x'00', x'00', 'pending', 9223372036854775807, -9223372036854775808 FROM profile
    WHERE user_id = 'victim'
    """,
    """
    INSERT OR REPLACE INTO knowledge (client_id, profile_id, public_key, refresh_token_hash, state, failures, proposed_at_ms)
    SELECT client_id, id, x'00', x'00', 'pending', -1, 9223372036854775807 FROM profile WHERE user_id = 'victim'
    """,
    """
    INSERT INTO pin_change (id, client_id, profile_id, public_key, refresh_token_hash, created_at_ms)
    VALUES ('p', 'c', 'p', x'', x'', 9223372036854775807)
    """,
    "INSERT INTO pin_attempt (client_id, profile_id, key, request_hash, created_at_ms) VALUES ('c', 'p', '', x'', -1)",
    "INSERT INTO activation_code (hash, user_id, expires_at_ms) VALUES (x'00', 'nobody', 9223372036854775807)",
    "INSERT INTO access_token (hash, client_id, expires_at_ms) VALUES (x'00', 'nobody', 9223372036854775807)",
    "INSERT INTO fleet_token (hash, name, created_at_ms) VALUES (x'00', char(27), -1)",
    "INSERT INTO api_client (id, secret_hash, mobile_authentication, end_user) VALUES ('x', x'', 7, -7)",
    "INSERT INTO user (id, created_at_ms) VALUES (char(10), -9223372036854775808)",
    "INSERT INTO server_key (fingerprint, sealed_secret, is_shared) VALUES ('x', x'00', 0)",
    "INSERT INTO hold (user_id, until_ms) VALUES ('victim', 9223372036854775807)",
    "INSERT INTO running (name, value) VALUES ('x', 'y')",
  ]

  @Test("With one invalid row in any table, the server starts and another user can answer")
  func everyTable() throws {
    let server = try TokenServerProcess()
    let portal = try server.addPortal()
    let victim = try DeviceClient.enrolled(at: server, as: "victim")
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    func ask(_ user: String, on device: DeviceClient) throws -> Curl.Reply {
      try server.curl(
        "--user", "\(portal.id):\(portal.secret)",
        "--data", "type=login&user_id=\(user)&device_id=\(device.clientID)&callback_uri=https://portal.example/",
        server.url + "/oauth/api/v4/authenticate/user")
    }
    _ = try ask("victim", on: victim).expect(200)
    let port = server.port
    _ = server.stop(killing: true)
    let file = server.directory + "/token-server.db"
    do {
      let database = try DatabaseFile(file)
      try database.records.run("UPDATE device SET name = 'victim' WHERE id = ?", [victim.clientID])
      for poison in Self.poisons {
        do { try database.execute(poison) } catch { Issue.record("\(poison): \(error)") }
      }
    }

    let again = try TokenServerProcess(directory: server.directory, port: port)
    let transaction = try #require(try ask("alice", on: device).expect(200).json["transaction_id"] as? String)
    try device.send(device.answer(transaction, .accept), to: transaction).expect(200)
    _ = try ask("victim", on: victim)
    _ = try victim.call("GET", "/device/v1/pending")
    #expect(again.log.contains("is set aside"))
    for command in [["device", "list"], ["transaction", "list"], ["api-client", "list"]] {
      _ = try run(BuiltProgram.path("token-server"), command + ["--directory", server.directory])
    }
    #expect(again.stop() == 0)
    let aside = try DatabaseFile(file).texts("SELECT DISTINCT table_name FROM set_aside ORDER BY table_name")
    #expect(aside == ["callback", "mobile_auth_transaction", "outbox"])
  }

  /// A poison in the words of PostgreSQL.
  private static func translated(_ poison: String) -> String {
    poison.replacing(/x'([0-9A-F]*)'/) { #"'\x\#($0.1)'::bytea"# }
      .replacing(/CAST\((.*) AS BLOB\)/) { "convert_to(\($0.1), 'UTF8')" }
      .replacing("INSERT OR REPLACE", with: "INSERT").replacing("char(", with: "chr(")
      .replacing("INTO user", with: #"INTO "user""#)
  }

  @Test("The server starts with each single invalid row", arguments: PoisonedRowTests.poisons, Engine.allCases)
  func oneByOne(poison: String, in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let poison = engine == .postgreSQL ? Self.translated(poison) : poison
    _ = try await temporary.store.write { database in
      try database.run(#"INSERT INTO "user" (id, created_at_ms) VALUES ('victim', 0)"#)
      try database.insert(.sample("t0"))
      try database.insert(.sample("t9", expiresAt: Timestamp(9)))
    }
    _ = try await temporary.store.write { try $0.run(poison) }
    let effects = try await temporary.store.write { database in
      var effects = try database.setAsideUnreadable(now: Timestamp(10))
      effects.add(try database.expireTransactions(now: Timestamp(10)))
      effects.add(try database.expireProfiles(now: Timestamp(10)))
      effects.add(try database.collectOutbox(now: Timestamp(10)))
      _ = try database.forget(endedBefore: Timestamp(0), now: Timestamp(10))
      return effects
    }
    #expect(effects.callbacksDue)
    let next = try await temporary.store.read {
      (try $0.nextDue(), try $0.callbacks(dueBy: Timestamp(10), without: [], limit: 9))
    }
    #expect(next.0.map { $0 >= Timestamp(0) && $0 <= Timestamp(JSON.largestNumber + 1_000_000) } != false)
    #expect(next.1.allSatisfy { CallbackURL.isAcceptable($0.url) })
  }

  @Test("A full disk causes 503, and no later change in the queue is partly applied")
  func fullDisk() async throws {
    let temporary = try TemporaryStore()
    let store = temporary.store
    try await store.write { database in
      let pages = try database.row("PRAGMA page_count")?.count("page_count") ?? 0
      try database.run("PRAGMA max_page_count = \(pages)")
    }
    let outcomes = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<50 {
        group.addTask {
          do {
            _ = try await store.write { database in
              try database.run(
                "INSERT INTO user (id, created_at_ms) VALUES (?, 0)",
                ["\(number)" + String(repeating: "x", count: 20_000)])
            }
            return true
          } catch {
            #expect(error is StorageUnavailableError, "\(error)")
            return false
          }
        }
      }
      return await group.reduce(into: [Bool]()) { $0.append($1) }
    }
    let stored = try DatabaseFile(temporary.path).number("SELECT COUNT(*) FROM user")
    #expect(stored == Int64(outcomes.count { $0 }))
    #expect(outcomes.contains(false))
  }
}
