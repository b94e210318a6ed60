// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import SQLite
import ServerTestSupport
import Testing

@testable import TokenServerCore
@testable import TokenServerStore

/// The engines that a store can use.
enum Engine: CaseIterable { case sqlite, postgreSQL }

/// A store in a temporary file or database: a copy of one whose tables were created once for all tests.
final class TemporaryStore: Sendable {
  let store: Store
  /// Of the file.
  let path = TemporaryStore.newPath()
  /// The URL of the database; nil for a file.
  let url: String?

  private static func newPath() -> String { NSTemporaryDirectory() + "store-\(UUID().uuidString).db" }

  private static let original = Result {
    let path = newPath()
    try Store(path: path).close()
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try Data(contentsOf: URL(filePath: path))
  }

  private static let originalDatabase = Result {
    let url = try TestPostgreSQL.newDatabase()
    try Store(PostgreSQLAddress(url), connections: 1).close()
    return url
  }

  init(_ engine: Engine = .sqlite) throws {
    switch engine {
    case .sqlite:
      try Self.original.get().write(to: URL(filePath: path))
      store = try Store(path: path)
      url = nil
    case .postgreSQL:
      let url = try TestPostgreSQL.newDatabase(copying: Self.originalDatabase.get())
      store = try Store(PostgreSQLAddress(url), connections: 4, patience: .seconds(60))
      self.url = url
    }
  }

  /// The store of another server on the same PostgreSQL database. It waits long, because the other tests keep the
  /// machine busy.
  func another(connections: Int) throws -> Store {
    try Store(PostgreSQLAddress(url ?? ""), connections: connections, patience: .seconds(60))
  }

  deinit {
    store.close()
    for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
  }
}

/// A connection of its own to a database file. It waits for others for a minute, and enforces no foreign keys.
struct DatabaseFile {
  private let session: SQLiteSession

  init(_ path: String) throws {
    session = SQLiteSession(try Connection(path: path, isPrivate: false))
    try session.connection.execute("PRAGMA busy_timeout = 60000")
  }

  var transaction: any SQLTransaction { SQLiteTransaction(session) }
  /// The server's records, without a transaction around them.
  var records: Database { Database(transaction) }

  func execute(_ statements: String) throws { try session.connection.execute(statements) }

  /// - Returns: the first column of each row.
  func values(_ query: String) throws -> [SQLValue] {
    try records.rows(query).compactMap { $0.columns.first?.value }
  }

  func number(_ query: String) throws -> Int64? {
    if case .integer(let number) = try values(query).first { number } else { nil }
  }

  func texts(_ query: String) throws -> [String] {
    try values(query).compactMap { if case .text(let text) = $0 { text } else { nil } }
  }
}

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct TransactionStoreTests {
  @Test("The first ending wins", arguments: Engine.allCases) func theFirstEndingWins(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let store = temporary.store
    _ = try await store.write { try $0.insert(.sample()) }
    let endings: [TransactionOutcome] = [.accepted, .denied, .expired, .canceled, .superseded, .invalidAnswers]
    let winners = try await withThrowingTaskGroup(of: TransactionOutcome?.self) { group in
      for ending in endings {
        group.addTask {
          try await store.write { try $0.end(.sample(), ending, now: Timestamp(1)) } == nil ? nil : ending
        }
      }
      return try await group.reduce(into: [TransactionOutcome]()) { if let ending = $1 { $0.append(ending) } }
    }
    #expect(winners.count == 1)
    let stored = try await store.read { try $0.transaction("t1") }
    #expect(stored?.state == winners.first?.state)
  }

  @Test(
    "A device is notified of the end of a request, but not of the end by its own answer", arguments: Engine.allCases)
  func notices(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let (answered, canceled) = try await temporary.store.write { database in
      for id in ["answered", "canceled"] { try database.insert(.sample(id)) }
      return (
        try database.end(
          .sample("answered"), .accepted, transactionEnd: TransactionEnd(receipt: "r", idempotencyKey: "k"),
          now: Timestamp(1)),
        try database.end(.sample("canceled"), .canceled, now: Timestamp(1))
      )
    }
    #expect(answered?.notices == [])
    #expect(canceled?.notices.map(\.event.kind) == [.requestClosed])
  }

  @Test(
    "A token that a login stored after its user was removed is not one of the next user", arguments: Engine.allCases)
  func lateToken(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let (client, profile, now) = (ClientID("C1"), ProfileID("PROF01"), Timestamp(1))
    let (hash, key): ([UInt8], P256PublicKey) = ([7], try P256PrivateKey().publicKey)
    let registration = RegistrationRequest(
      clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
      capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    try await temporary.store.write { database in
      try database.insertDevice(id: client, registration: registration, key: key, credential: [1], now: now)
      for user in ["alice", "bob"] { _ = try database.insertUser(UserID(user), now: now) }
      try database.insertProfile(profile, on: client, userID: UserID("alice"), activation: [], now: now)
      try database.removeProfile(ProfileName(clientID: client, id: profile), now: now)
      try database.insertAccessToken(
        hash, clientID: client, profileID: profile, by: .pin, expiresAt: Timestamp(1000), now: now)
      try database.insertProfile(profile, on: client, userID: UserID("bob"), activation: [], now: now)
    }
    #expect(try await temporary.store.read { try $0.row("SELECT 1 FROM access_token") == nil })
  }

  @Test("The callback is stored with the ending", arguments: Engine.allCases) func theCallbackIsStoredWithTheEnding(
    in engine: Engine
  ) async throws {
    let temporary = try TemporaryStore(engine)
    let store = temporary.store
    let effects = try await store.write { database in
      var transaction = Transaction.sample()
      transaction.portal = "shop"
      try database.insert(transaction)
      return try database.transaction("t1").flatMap { try database.end($0, .denied, now: Timestamp(7)) }
    }
    #expect(effects?.callbacksDue == true)
    let jobs = try await store.read { try $0.callbacks(dueBy: Timestamp(7), without: [], limit: 10) }
    #expect(jobs.map(\.transactionID) == ["t1"])
    #expect(jobs.map(\.url) == ["https://portal/cb"] && jobs.map(\.host) == ["portal:443"])
    #expect(jobs.map(\.portal) == ["shop"])
    #expect(
      try await store.read { try $0.callbacks(dueBy: Timestamp(7), without: [], portals: ["shop"], limit: 10) }.isEmpty)
    #expect(jobs.map(\.attempts) == [0] && jobs.map(\.dueAt) == [Timestamp(7)])
    #expect(try await store.read { try $0.callbacks(dueBy: Timestamp(6), without: [], limit: 10) }.isEmpty)
    #expect(try await store.read { try $0.callbacks(dueBy: Timestamp(7), without: ["portal:443"], limit: 10) }.isEmpty)
    #expect(try await store.read { try $0.nextCallback(after: Timestamp(6)) } == Timestamp(7))
  }

  @Test(
    "A deleted portal's open transactions are canceled, and its callbacks are deleted; others stay",
    arguments: Engine.allCases)
  func deletedPortal(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let store = temporary.store
    let deleted = try await store.write { database in
      for portal in ["shop", "bank"] {
        let client = APIClient(
          id: portal, secretHash: [1], mayAuthenticate: true, mayManageDevices: false, mayIntrospect: false)
        _ = try database.insertAPIClient(client)
        for id in ["open", "denied"] {
          var transaction = Transaction.sample("\(portal) \(id)")
          transaction.portal = portal
          try database.insert(transaction)
        }
        var denied = Transaction.sample("\(portal) denied")
        denied.portal = portal
        _ = try database.end(denied, .denied, now: Timestamp(1))
      }
      return try database.deleteAPIClient("shop", now: Timestamp(2))
    }
    #expect(deleted?.notices.map(\.event.kind) == [.requestClosed])
    let (states, callbacks, again) = try await store.write { database in
      (
        try ["shop open", "shop denied", "bank open"].map { try database.transaction($0)?.state },
        try database.callbacks(dueBy: Timestamp(9), without: [], limit: 10).map(\.transactionID),
        try database.deleteAPIClient("shop", now: Timestamp(3)) == nil
      )
    }
    #expect(states == [.canceled, .rejected, .open] && callbacks == ["bank denied"] && again)
  }

  @Test(
    "Of many notes of a delivery, at two servers, one is the first, and none of another device",
    arguments: Engine.allCases)
  func oneFirstNote(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let second =
      try temporary.url.map { try Store(PostgreSQLAddress($0), connections: 2) } ?? Store(path: temporary.path)
    try await temporary.store.write { database in
      for id in ["t1", "t2", "over"] { try database.insert(.sample(id, expiresAt: Timestamp(1000))) }
      _ = try database.end(.sample("over"), .denied, now: Timestamp(1))
    }
    func note(to client: String = "C1", at store: Store, now: Int64) async throws -> [String] {
      try await store.writeStatement(isUrgent: false) {
        try $0.noteDelivery(of: ["t1", "over", "t2", "\"]"], to: ClientID(client), now: Timestamp(now)).map(\.id)
      }
    }
    #expect(try await note(to: "C2", at: second, now: 5).isEmpty)
    #expect(try await note(at: second, now: 1000).isEmpty)
    let noted = try await withThrowingTaskGroup(of: [(id: String, now: Int64)].self) { group in
      for now in Int64(10)..<30 {
        let store = now % 2 == 0 ? temporary.store : second
        group.addTask { try await note(at: store, now: now).map { ($0, now) } }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(noted.map(\.id).sorted() == ["t1", "t2"])
    for (id, now) in noted {
      #expect(try await temporary.store.read { try $0.transaction(id) }?.deliveredAt?.milliseconds == now)
    }
    second.close()
  }

  @Test("Expiry", arguments: Engine.allCases) func expiry(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let effects = try await temporary.store.write { database in
      try database.insert(.sample("early", expiresAt: Timestamp(10)))
      try database.insert(.sample("told", expiresAt: Timestamp(11), callbackOnExpiry: true))
      try database.insert(.sample("late", expiresAt: Timestamp(12)))
      #expect(try database.nextExpiry() == Timestamp(10))
      return try database.expireTransactions(now: Timestamp(11))
    }
    #expect(effects.notices.map(\.event.transactionID) == ["early", "told"])
    #expect(effects.callbacksDue)
    let left = try await temporary.store.read {
      (0, try $0.nextExpiry(), try $0.callbacks(dueBy: Timestamp(99), without: [], limit: 9))
    }
    #expect(left.1 == Timestamp(12))
    #expect(left.2.map(\.transactionID) == ["told"])
  }

  @Test("Newest first ties by id", arguments: Engine.allCases) func newestFirstTiesById(in engine: Engine) async throws
  {
    let temporary = try TemporaryStore(engine)
    let ids = try await temporary.store.write { database in
      for id in ["b", "a", "c"] { try database.insert(.sample(id)) }
      return try database.openTransactions(of: ClientID("C1"), now: Timestamp(0)).map(\.id)
    }
    #expect(ids == ["a", "b", "c"])
  }

  @Test("Forgotten after their time", arguments: Engine.allCases) func forgottenAfterTheirTime(in engine: Engine)
    async throws
  {
    let temporary = try TemporaryStore(engine)
    try await temporary.store.write { database in
      for id in ["old", "new"] { try database.insert(.sample(id)) }
      _ = try database.end(.sample("old"), .denied, now: Timestamp(10))
      _ = try database.end(.sample("new"), .denied, now: Timestamp(20))
      _ = try database.forget(endedBefore: Timestamp(15), now: Timestamp(30))
      #expect(try database.transaction("old") == nil)
      #expect(try database.transaction("new") != nil)
      #expect(try database.callbacks(dueBy: Timestamp(99), without: [], limit: 9).map(\.transactionID) == ["new"])
    }
  }

  @Test("The outbox is emptied once", arguments: Engine.allCases) func theOutboxIsEmptiedOnce(in engine: Engine)
    async throws
  {
    let temporary = try TemporaryStore(engine)
    var effects = Effects()
    effects.notify(ClientID("C1"), DeviceEvent(.deviceRevoked))
    let posted = effects
    try await temporary.store.write { try $0.post(posted, now: Timestamp(0)) }
    let collected = try await temporary.store.write {
      [try $0.collectOutbox(now: Timestamp(0)), try $0.collectOutbox(now: Timestamp(0))]
    }
    #expect(collected.map(\.notices) == [posted.notices, []])
  }
}
