// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import ServerTestSupport
import Testing
import TokenServerCore

@testable import TokenServerStore

/// Texts with U+0000, which SQLite would shorten and PostgreSQL does not have.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ZeroTests {
  @Test("Such a text is an error of its statement only", arguments: Engine.allCases)
  func statement(engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    await #expect(throws: UnstorableTextError.self) {
      try await temporary.store.write { try $0.insertUser(UserID("a\0"), now: Timestamp(0)) }
    }
    #expect(try await temporary.store.write { try $0.insertUser(UserID("a"), now: Timestamp(0)) })
    await #expect(throws: UnstorableTextError.self) {
      try await temporary.store.read { try $0.profiles(of: UserID("a\0")) }
    }
    await #expect(throws: UnstorableTextError.self) {
      try await temporary.store.write { try $0.profileNames(of: UserID("a\0")) }
    }
  }

  /// Names of leases contain what devices write. Before, this one was an error each time that leases were released.
  @Test("A lease can have any name", arguments: ["a\0b", "pin/c/\u{1F511}", String(repeating: "x", count: 20_000)])
  func lease(name: String) async throws {
    let temporary = try TemporaryStore(.postgreSQL)
    let held = try await temporary.store.exclusively(name) {
      try await temporary.store.read { try $0.row("SELECT COUNT(*) AS count FROM lease")?.count("count") }
    }
    #expect(held == 1)
    try await temporary.store.releaseLeases()
    #expect(try await temporary.store.read { try $0.row("SELECT 1 FROM lease") == nil })
  }

  /// Before, the second part was cut off: the request was for alice.
  @Test("A portal cannot ask for a user with such a name, or cancel such a request") func portal() throws {
    let (fixture, device) = try PINFixture.enrolled()
    let transaction = try fixture.ask(device)
    func status(_ arguments: String...) throws -> Int {
      let credentials = ["--user", "\(fixture.portal.id):\(fixture.portal.secret)"]
      return try fixture.server.curl(credentials + arguments).status
    }
    let base = fixture.server.url + "/oauth/api/v4"
    #expect(try status("--request", "DELETE", base + "/authenticate/transaction/\(transaction)%00x") == 400)
    #expect(try status("--request", "DELETE", base + "/users/alice%00x/devices") == 400)
    #expect(try status("--json", #"{"delete":["a","b"]}"#, base + "/users/alice%00x/devices") == 400)
    let start = try fixture.server.curl([
      "--user", "\(fixture.portal.id):\(fixture.portal.secret)", "--data", "user_id=alice%00x&type=login",
      base + "/authenticate/user",
    ])
    #expect(start.status == 400 && start.json["error_code"] as? Int == 1003)
    #expect(try status(base + "/authenticate/transaction/\(transaction)") == 200)
  }
}
