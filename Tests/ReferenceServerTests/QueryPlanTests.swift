// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import Secrets
import Testing

@testable import TokenServerCore
@testable import TokenServerStore

/// How SQLite runs the statements of devices, and of clients without a device: each changes or reads few rows, and must
/// not take longer for the rows that others have caused.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct QueryPlanTests {
  private static let now = Timestamp(1000)
  private static let later = Timestamp(9000)
  private static let user = UserID("alice")
  private static let client = ClientID("C1")
  private static let name = ProfileName(clientID: client, id: ProfileID("PROF01"))

  /// The steps in which a whole table or a whole index is read, with their statements.
  private final class Scans {
    var found: [String] = []
  }

  /// Asks for the plan of each statement before it runs.
  private struct Explained: SQLTransaction {
    let original: any SQLTransaction
    let scans: Scans

    var dialect: SQLDialect { original.dialect }
    var lockingRows: String { original.lockingRows }

    func execute(_ statement: String, _ parameters: [any SQLParameter]) throws -> Int {
      try explain(statement, parameters)
      return try original.execute(statement, parameters)
    }

    func query(_ statement: String, _ parameters: [any SQLParameter], _ visit: (any SQLRow) throws -> Bool) throws {
      try explain(statement, parameters)
      try original.query(statement, parameters, visit)
    }

    private func explain(_ statement: String, _ parameters: [any SQLParameter]) throws {
      try original.query("EXPLAIN QUERY PLAN \(statement)", parameters) { row in
        // Neither a list in a parameter nor a row without a table is one.
        if case .text(let step) = row.value(of: "detail"), step.hasPrefix("SCAN "), !step.hasPrefix("SCAN json_each"),
          step != "SCAN CONSTANT ROW"
        {
          scans.found.append("\(step): \(statement)")
        }
        return true
      }
    }
  }

  @Test("No statement of a request reads a whole table") func noScan() throws {
    let temporary = try TemporaryStore()
    let scans = Scans()
    let database = Database(Explained(original: try DatabaseFile(temporary.path).transaction, scans: scans))
    try Self.register(database)
    try Self.enroll(database)
    try Self.useAuthenticators(database)
    try Self.request(database)
    try Self.remove(database)
    #expect(scans.found == [])
    // A list of a command.
    _ = try database.devices()
    #expect(scans.found.count == 1)
  }

  private static func register(_ database: Database) throws {
    let key = try P256PrivateKey().publicKey
    let registration = RegistrationRequest(
      clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
      capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    _ = try database.insertUser(user, now: now)
    // Both were made with the former pepper.
    try database.insertActivationCode([2], userID: user, expiresAt: later)
    #expect(try database.insertFleetToken([4], name: "fleet", now: now))
    let fleet = try database.adoptFleetToken([[3], [4]])
    #expect(try database.isFleetToken(fleet))
    _ = try database.device(registeredWith: fleet, thumbprint: "t")
    _ = try database.deviceCount(registeredWith: fleet, orDeletedAfter: now)
    try database.insertDevice(id: client, registration: registration, key: key, credential: fleet, now: now)
    #expect(try database.hasDevice(client))
    _ = try database.device(client)
    _ = try database.deviceName(client)
    try database.noteSoftware(of: client, version: "2", osVersion: "x", capabilities: "{}")
    let code = try database.adoptActivationCode([[1], [2]])
    _ = try database.activate(code, as: name.id, on: client, now: now)
    try database.insertAccessToken(
      [5], clientID: client, profileID: name.id, by: .activation, expiresAt: later, now: now)
    _ = try database.accessTokenOwner([5], now: now)
    _ = try database.validAccessToken([5], now: now)
    try database.revokeAccessToken([5], of: client)
  }

  private static func enroll(_ database: Database) throws {
    let profile = try #require(try database.profile(name.id, on: client))
    let knowledge = try makeKnowledge()
    #expect(try database.propose(knowledge, nonce: "n", now: now))
    try database.spend("m", of: profile)
    #expect(try database.activateKnowledge(of: profile, nonce: "n", activation: [6]))
    let attempt = PINAttempt(clientID: client, profileID: name.id, key: "a", requestHash: [7])
    _ = try database.countedRequest(of: attempt)
    try database.insert(attempt, now: now)
    #expect(try database.delete(attempt))
    try database.clearAttempts(of: name)
    try database.insertPINChange("p", knowledge, now: now)
    _ = try database.pinChange("p", of: profile)
    #expect(try database.commitPINChange("p", of: profile))
    try database.deletePINChange("p")

    _ = try database.sharedServerKey()
    try database.insertServerKey("K", sealedSecret: [8], isShared: false)
    _ = try database.serverKey("K")
    #expect(try database.setKeys(of: profile, certificate: [9], fingerprint: "F", serverKey: "K", keyID: "k"))
    let exchanged = try #require(try database.profile(name.id, on: client))
    #expect(try database.acknowledgeKeys(of: exchanged))
    #expect(try database.setPush(of: exchanged, token: "t", transport: .sse))
    #expect(try database.setTransport(of: exchanged, .mqtt))
    #expect(try database.hasMailbox(client))
    #expect(try database.isCurrent(exchanged))
    #expect(try database.profiles(on: client).count == 1)
    #expect(try database.profiles(of: user).count == 1)
    _ = try database.profile(of: user, on: client)
    _ = try database.profileNames(on: client)
  }

  private static func makeKnowledge() throws -> NewKnowledgeKey {
    // The pepper of the test: any 32 bytes.
    try NewKnowledgeKey(
      clientID: client, profileID: name.id, hasher: KeyedHasher(SecretBytes(copying: [UInt8](repeating: 1, count: 32))))
  }

  private static func useAuthenticators(_ database: Database) throws {
    let badge = AuthenticatorName(profile: name, id: "badge")
    let new = NewAuthenticator(
      name: badge, kind: .custom, registrationID: "r", key: try makeKnowledge(), registrationData: nil)
    #expect(try database.propose(new, now: now))
    #expect(try database.activate(badge, registrationID: "r"))
    _ = try database.authenticator(badge)
    _ = try database.refusedRegistrations(of: badge, since: now)
    let attempt = AuthenticatorAttempt(name: badge, key: "b", requestHash: [1])
    _ = try database.countedAttempt(attempt)
    try database.insert(
      attempt, CountedAuthenticatorAttempt(requestHash: [1], attemptID: "i", registrationID: "r"), now: now)
    #expect(try database.delete(attempt))
    try database.setFailures(0, of: badge)
    #expect(try database.removeAuthenticator(badge))
  }

  private static func request(_ database: Database) throws {
    let transaction = Transaction.sample("t1")
    try database.insert(transaction)
    #expect(try database.transaction("t1") != nil)
    #expect(try database.isOpen("t1"))
    #expect(try database.openTransactions(of: client, now: now).count == 1)
    #expect(try database.openTransactionCount(of: user, on: client, now: now) == 1)
    #expect(try database.undeliveredTransactions(of: client, now: now) == ["t1"])
    #expect(try database.noteDelivery(of: ["t1"], to: client, now: now).count == 1)
    #expect(try database.countBadAnswer(to: "t1") == 1)
    #expect(try database.countPINAttempt(for: "t1", nonce: "n"))
    #expect(try database.countAuthenticatorAttempt(for: "t1", nonce: "n", method: .push))
    try database.setRequest(transaction)
    _ = try database.storedReply("c", of: client)
    try database.insert(StoredReply(requestHash: [1], status: 200, body: []), key: "c", clientID: client, now: now)
    try database.replaceReply("c", of: client, to: [1], body: [2])
    try database.hold(user, until: later)
    _ = try database.holdEnd(of: user, now: now)
    _ = try database.end(transaction, .accepted, now: now)
    let job = try #require(try database.callbacks(dueBy: now, without: ["h"], portals: ["p"], limit: 1).first)
    try database.postponeCallback(job, until: later)
    _ = try database.nextCallback(after: now)
    try database.deleteCallback("t1")
    try database.insert(Transaction.sample("t2", expiresAt: Timestamp(10)))
    _ = try database.nextDue()
    #expect(try database.expireTransactions(now: now).endings.count == 1)
    _ = try database.expireProfiles(now: now)
  }

  private static func remove(_ database: Database) throws {
    let profile = try #require(try database.profile(name.id, on: client))
    _ = try database.disenroll(profile, .keysAndPush, byDevice: true, now: now)
    _ = try database.deleteDevice(client, now: now)
    _ = try database.formerProfiles(on: client, limit: 1)
    try database.insertProfile(name.id, on: client, userID: user, activation: [1], now: now)
  }
}
