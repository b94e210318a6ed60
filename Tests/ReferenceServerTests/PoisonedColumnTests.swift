// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import Testing

@testable import TokenServerCore
@testable import TokenServerStore

/// Tests with one row in which one column has a wrong type or is out of range. The tables have no column types, as in
/// an edited database file.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PoisonedColumnTests {
  static let tables = [
    "access_token", "activation_code", "api_client", "authenticator", "authenticator_attempt", "callback", "device",
    "fleet_token", "hold", "knowledge",
    "mobile_auth_transaction", "outbox", "pin_attempt", "pin_change", "profile", "running", "server_key", "user",
    "verdict",
  ]

  static let values: [SQLValue] = [
    .null, .text("x"), .text(""), .blob([]), .blob([0, 0xFF]), .integer(-1), .integer(2), .integer(.max),
    .integer(.min), .real(0.5), .real(-1e300), .real(1e300),
  ]

  /// Alice's rows come first; bob's are the last of their tables and are poisoned.
  static func fill(_ database: Database) throws {
    for (user, client) in [("alice", ClientID("C1")), ("bob", ClientID("C2"))] {
      try database.run("INSERT INTO user (id, created_at_ms) VALUES (?, 0)", [user])
      let key = try P256PrivateKey().publicKey
      let registration = RegistrationRequest(
        clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
      try database.insertDevice(id: client, registration: registration, key: key, credential: [1], now: Timestamp(0))
      for profile in ["WAITS", "STAYS"] {
        try database.run(
          """
          INSERT INTO profile (client_id, id, user_id, activation, created_at_ms, push_token, push_transport)
          VALUES (?, ?, ?, x'00', 0, 't', 'mqtt')
          """, [client, profile, user + profile])
      }
      let fresh = try NewKnowledgeKey.sample(clientID: client, profileID: ProfileID("WAITS"))
      _ = try database.propose(fresh, nonce: "n", now: Timestamp(0))
      for (id, isActive) in [("badge", true), ("finger", false)] {
        let name = AuthenticatorName(profile: ProfileName(clientID: client, id: ProfileID("STAYS")), id: id)
        let key = try NewKnowledgeKey.sample(clientID: client, profileID: ProfileID("STAYS"))
        _ = try database.propose(
          NewAuthenticator(name: name, kind: .custom, registrationID: "r", key: key, registrationData: "d"),
          now: Timestamp(0))
        if isActive { _ = try database.activate(name, registrationID: "r") }
        try database.insert(
          AuthenticatorAttempt(name: name, key: "k", requestHash: [1]),
          CountedAuthenticatorAttempt(requestHash: [1], attemptID: "a", registrationID: "r"), now: Timestamp(0))
      }
      try database.insertPINChange("p\(client)", fresh, now: Timestamp(0))
      try database.insert(Transaction.sample("t\(client)", expiresAt: Timestamp(9)))
      try database.insertCallback("t\(client)", url: "https://portal.example/", of: "portal", dueAt: Timestamp(1))
      try database.post(
        Effects(notices: [.init(clientID: client, event: DeviceEvent(.resync))]), now: Timestamp(0))
      try database.hold(UserID(user), until: Timestamp(1000))
      try database.run("INSERT INTO api_client VALUES (?, x'00', 1, 1, 1, 0)", [user])
      try database.insertActivationCode(Array(user.utf8), userID: UserID(user), expiresAt: Timestamp(1000))
      try database.run(
        "INSERT INTO access_token (hash, client_id, expires_at_ms) VALUES (?, ?, 1000)", [Array(user.utf8), client])
      try database.run(
        "INSERT INTO fleet_token (hash, name, created_at_ms) VALUES (?, ?, 0)", [Array(user.utf8), user])
      try database.run("INSERT INTO server_key VALUES (?, x'00', 0)", [user])
      try database.insert(
        StoredReply(requestHash: [], status: 200, body: []), key: "k", clientID: client, now: Timestamp(0))
      try database.run("INSERT INTO pin_attempt VALUES (?, 'WAITS', 'k', x'', 0)", [client])
      try database.run("INSERT INTO running VALUES (?, 'x')", [user])
    }
  }

  /// Returns a store whose tables accept any value in each column.
  private static func looseStore() throws -> TemporaryStore {
    let temporary = try TemporaryStore()
    let file = try DatabaseFile(temporary.path)
    try fill(file.records)
    for table in tables {
      let names = try file.texts("SELECT name FROM pragma_table_info('\(table)')").joined(separator: ", ")
      let key = try file.texts("SELECT name FROM pragma_table_info('\(table)') WHERE pk > 0").joined(separator: ", ")
      try file.execute(
        """
        CREATE TABLE loose (\(names), PRIMARY KEY (\(key)));
        INSERT INTO loose SELECT * FROM \(table) ORDER BY \(key);
        DROP TABLE \(table);
        ALTER TABLE loose RENAME TO \(table);
        """)
    }
    return temporary
  }

  @Test("A poisoned row does not affect lists and timers of other rows", arguments: tables)
  func poison(table: String) throws {
    let temporary = try Self.looseStore()
    let file = try DatabaseFile(temporary.path)
    let names = try file.texts("SELECT name FROM pragma_table_info('\(table)')")
    #expect(!names.isEmpty)
    for name in names {
      for value in Self.values {
        try file.execute("BEGIN")
        try file.records.run(
          "UPDATE \(table) SET \(name) = ? WHERE rowid = (SELECT MAX(rowid) FROM \(table))", [value])
        do { try Self.expectAliceServed(file.records, "\(table).\(name) = \(value)") } catch {
          Issue.record("\(table).\(name) = \(value): \(error)")
        }
        try file.execute("ROLLBACK")
      }
    }
  }

  /// Runs the periodic work of the server and the lists of commands and portals.
  private static func expectAliceServed(_ database: Database, _ poison: String) throws {
    let comment = Comment(rawValue: poison)
    #expect(try database.nextExpiry().map { $0 <= Timestamp(9) } == true, comment)
    #expect(try database.nextPendingExpiry().map { $0 <= Timestamp(0) + PINVerifierRecord.pendingFor } == true, comment)
    #expect(try database.nextCallback(after: Timestamp(0)).map { $0 <= Timestamp(1) } == true, comment)
    #expect(try database.devices(withTransport: .mqtt).contains(ClientID("C1")), comment)
    #expect(try database.devices().contains { $0.id == ClientID("C1") }, comment)
    #expect(try database.apiClients().contains { $0.id == "alice" }, comment)
    #expect(try database.users().contains { $0.id == UserID("alice") }, comment)
    #expect(try database.fleetTokens().contains { $0.name == "alice" }, comment)
    #expect(try database.activationCodes(now: Timestamp(10)).contains { $0.code.userID == UserID("alice") }, comment)
    #expect(try database.transactions(limit: 9).contains { $0.0.id == "tC1" }, comment)
    #expect(try database.holds(now: Timestamp(10)).contains { $0.userID == UserID("alice") }, comment)
    #expect(try database.profiles(of: UserID("aliceSTAYS")).count == 1, comment)
    _ = try database.unreadableRows()
    _ = try database.issuer()
    _ = try database.profiles(of: UserID("bobSTAYS"))
    var effects = try database.setAsideUnreadable(now: Timestamp(10))
    effects.add(try database.expireTransactions(now: Timestamp(10)))
    effects.add(try database.expireProfiles(now: Timestamp(0) + PINVerifierRecord.pendingFor))
    effects.add(try database.collectOutbox(now: Timestamp(10)))
    #expect(try database.transaction("tC1")?.state == .expired, comment)
    #expect(try database.profile(ProfileID("WAITS"), on: ClientID("C1"))?.isDeleted == true, comment)
    #expect(effects.notices.contains(.init(clientID: ClientID("C1"), event: DeviceEvent(.resync))), comment)
    #expect(
      try database.callbacks(dueBy: Timestamp(10), without: [], limit: 9).contains { $0.transactionID == "tC1" },
      comment)
    _ = try database.deleteDevice(ClientID("C2"), now: Timestamp(10))
    _ = try database.forget(endedBefore: Timestamp(0), now: Timestamp(10))
    #expect(try database.profile(ProfileID("STAYS"), on: ClientID("C1"))?.isDeleted == false, comment)
  }

  /// Fails if the row blocks other rows, or if it is skipped without a report.
  @Test(
    "An unreadable row is reported with its table and row id",
    arguments: [
      ("device", "key_x", "row 2 of device cannot be read: "),
      ("profile", "activation", "row 4 of profile cannot be read: activation is not a blob"),
      ("knowledge", "failures", "row 4 of profile cannot be read: knowledge_failures is not a number"),
      ("api_client", "secret_hash", "row 2 of api_client cannot be read: secret_hash is not a blob"),
      ("user", "created_at_ms", "row 2 of user cannot be read: created_at_ms is not a number"),
      ("fleet_token", "created_at_ms", "row 2 of fleet_token cannot be read: created_at_ms is not a number"),
      ("activation_code", "expires_at_ms", "row 2 of activation_code cannot be read: expires_at_ms is not a number"),
      ("hold", "until_ms", "row \"bob\" of hold cannot be read: until_ms is not a number"),
      ("callback", "attempts", "row 2 of callback is set aside: attempts is not a number"),
      ("outbox", "event", "row 2 of outbox is set aside: event is not a blob"),
    ])
  func named(table: String, column: String, line: String) throws {
    let temporary = try Self.looseStore()
    let file = try DatabaseFile(temporary.path)
    try file.execute("UPDATE \(table) SET \(column) = 'x' WHERE rowid = (SELECT MAX(rowid) FROM \(table))")
    let warnings =
      try file.records.setAsideUnreadable(now: Timestamp(0)).warnings
      + file.records.collectOutbox(now: Timestamp(0)).warnings
    let lines = try warnings + file.records.unreadableRows()
    #expect(lines.contains { $0.hasPrefix(line) }, "\(lines)")
    #expect(lines.count == 1, "\(lines)")
  }

  @Test("What is set aside has its texts as SQL literals, also with combining marks") func literals() throws {
    let temporary = try Self.looseStore()
    let file = try DatabaseFile(temporary.path)
    try file.records.run(
      "UPDATE callback SET url = ?, attempts = 'x' WHERE rowid = (SELECT MAX(rowid) FROM callback)", ["a'\u{301}b"])
    _ = try file.records.setAsideUnreadable(now: Timestamp(0))
    let columns = try #require(try file.texts("SELECT columns FROM set_aside").first)
    let literal = try #require(columns.utf8.firstRange(of: Array("'a".utf8)))
    #expect(Array(columns.utf8[literal.lowerBound...].prefix(8)) == Array("'a''\u{301}b'".utf8))
  }

  /// Without `profileNames(on:)`, a validation would report the unreadable profile as removed, and the token would wipe
  /// the account.
  @Test("An unreadable profile still exists, and its device can be deleted with it")
  func unreadableProfile() async throws {
    let temporary = try Self.looseStore()
    try await temporary.store.write { database in
      try database.run("UPDATE profile SET activation = 7 WHERE client_id = 'C2'")
      #expect(try database.profiles(on: ClientID("C2")).isEmpty)
      #expect(try Set(database.profileNames(on: ClientID("C2")).map(\.id)) == [ProfileID("WAITS"), ProfileID("STAYS")])
      let effects = try database.deleteDevice(ClientID("C2"), now: Timestamp(5))
      #expect(effects.notices.count == 3)
      #expect(try database.profileNames(on: ClientID("C2")).isEmpty)
    }
  }
}

extension NewKnowledgeKey {
  fileprivate static func sample(clientID: ClientID, profileID: ProfileID) throws -> NewKnowledgeKey {
    // The pepper of the test: any 32 bytes.
    try NewKnowledgeKey(
      clientID: clientID, profileID: profileID, hasher: KeyedHasher(.init(copying: [UInt8](repeating: 1, count: 32))))
  }
}
