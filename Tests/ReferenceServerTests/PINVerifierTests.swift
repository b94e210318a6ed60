// SPDX-License-Identifier: Apache-2.0
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

private let client = ClientID("C1")
private let profileID = ProfileID("PROF01")

/// A profile with a PIN, in a store of its own.
private struct PINVerifierFixture {
  let temporary: TemporaryStore
  let verifier: PINAttemptVerifier
  let key: Ed25519.PublicKey

  init(_ engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    self.temporary = temporary
    let log = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    verifier = PINAttemptVerifier(
      store: temporary.store.records, announcer: ServerAnnouncer(hub: EventHub(), callbacks: AsyncSignal(), log: log),
      clock: ServerClock { Timestamp(0) }, limit: 3)
    let fresh = try NewKnowledgeKey(
      clientID: client, profileID: profileID,
      hasher: KeyedHasher(SecretBytes(copying: [UInt8](repeating: 1, count: 32))))
    key = fresh.publicKey
    try await temporary.store.write { database in
      let registration = RegistrationRequest(
        clientName: "x", softwareID: "x", softwareVersion: "1", key: JWK(try P256PrivateKey().publicKey),
        capabilities: .init(display: .none, keypad: true, button: true, led: .mono))
      try database.insertDevice(
        id: client, registration: registration, key: registration.jwks.keys[0].publicKey(), credential: [1],
        now: Timestamp(0))
      try database.insertProfile(profileID, on: client, userID: UserID("alice"), activation: [1], now: Timestamp(0))
      _ = try database.propose(fresh, nonce: "n", now: Timestamp(0))
      let profile = try #require(try database.profile(profileID, on: client))
      #expect(try database.activateKnowledge(of: profile, nonce: "n", activation: [2]))
    }
  }

  func attempt(_ key: String, _ hash: [UInt8] = [0]) -> PINAttempt {
    PINAttempt(clientID: client, profileID: profileID, key: key, requestHash: hash)
  }

  func failures() async throws -> Int? {
    try await temporary.store.read { try $0.profile(profileID, on: client)?.knowledge?.failures }
  }

  /// - Returns: 200 for a correct PIN, 422 for a wrong one, 403 at the limit.
  @discardableResult
  func ask(_ attempt: PINAttempt, isRight: Bool) async throws -> Int? {
    try await verifier.verify(attempt, isRight: { _ in isRight }) { _, outcome in
      let status = Problem(outcome, issuer: "https://a")?.status ?? 200
      return .init(reply: StoredReply(requestHash: attempt.requestHash, status: status, body: []))
    }?.status
  }

  struct PowerLossError: Error {}

  /// Counts an attempt and then simulates a power loss.
  func cut(_ attempt: PINAttempt) async throws {
    await #expect(throws: PowerLossError.self) {
      _ = try await verifier.verify(attempt, isRight: { _ in true }) { _, _ in throw PowerLossError() }
    }
  }

  /// A number that another connection reads, which sees only committed data.
  func committed(_ query: String) throws -> Int? {
    guard let url = temporary.url else {
      return try DatabaseFile(temporary.path).number(query).map { Int($0) }
    }
    return Int(try TestPostgreSQL.query(query, in: url).trimmingCharacters(in: .newlines))
  }

  /// Deletes the profile as an administrator's command does, which takes no lock.
  func deleteProfile() throws {
    try change { database in
      guard let profile = try database.profile(profileID, on: client) else { return }
      _ = try database.deleteProfile(profile.name, now: Timestamp(0))
    }
  }

  /// Changes the database on another connection.
  func change(_ body: (Database) throws -> Void) throws {
    guard let url = temporary.url else {
      let file = try DatabaseFile(temporary.path)
      try file.execute("BEGIN IMMEDIATE")
      try body(file.records)
      return try file.execute("COMMIT")
    }
    try PostgreSQLSession(PostgreSQLAddress(url)).transaction(.write, within: .seconds(60)) {
      try body(Database($0))
    }
  }
}

/// The order of steps within one attempt.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINVerifierTests {
  @Test("Counted on disk before it is looked at", arguments: Engine.allCases) func countedOnDiskBeforeItIsLookedAt(
    in engine: Engine
  ) async throws {
    let fixture = try await PINVerifierFixture(engine)
    _ = try await fixture.verifier.verify(fixture.attempt("a")) { judgedBy in
      #expect(judgedBy == fixture.key)
      #expect((try? fixture.committed("SELECT failures FROM knowledge")) == 1)
      #expect((try? fixture.committed("SELECT COUNT(*) FROM pin_attempt")) == 1)
      return true
    } apply: { _, _ in
      .init()
    }
    #expect(try await fixture.failures() == 0)
  }

  @Test("Wrong wrong right", arguments: Engine.allCases) func wrongWrongRight(in engine: Engine) async throws {
    let fixture = try await PINVerifierFixture(engine)
    #expect(try await fixture.ask(fixture.attempt("a"), isRight: false) == 422)
    #expect(try await fixture.ask(fixture.attempt("b"), isRight: false) == 422)
    #expect(try await fixture.failures() == 2)
    #expect(try await fixture.ask(fixture.attempt("c"), isRight: true) == 200)
    #expect(try await fixture.failures() == 0)
  }

  @Test("The limit takes the profile away", arguments: Engine.allCases) func theLimitTakesTheProfileAway(
    in engine: Engine
  ) async throws {
    let fixture = try await PINVerifierFixture(engine)
    for (key, status) in [("a", 422), ("b", 422), ("c", 403)] {
      #expect(try await fixture.ask(fixture.attempt(key), isRight: false) == status)
    }
    let profile = try await fixture.temporary.store.read { try $0.profile(profileID, on: client) }
    #expect(profile?.isDeleted == true && profile?.knowledge == nil)
    await #expect(throws: PINAttemptVerifier.VerificationError.noPIN) {
      try await fixture.ask(fixture.attempt("d"), isRight: true)
    }
  }

  @Test("An interrupted attempt is resumed and not counted again", arguments: Engine.allCases)
  func interruptedAttemptIsResumedAndNotCountedAgain(in engine: Engine) async throws {
    let fixture = try await PINVerifierFixture(engine)
    try await fixture.cut(fixture.attempt("a"))
    try await fixture.cut(fixture.attempt("a"))
    #expect(try await fixture.failures() == 1)
    await #expect(throws: PINAttemptVerifier.VerificationError.conflict) {
      try await fixture.ask(fixture.attempt("a", [1]), isRight: true)
    }
    #expect(try await fixture.ask(fixture.attempt("a"), isRight: false) == 422)
    #expect(try await fixture.failures() == 1)
  }

  @Test("Cut attempts are never given back", arguments: Engine.allCases) func cutAttemptsAreNeverGivenBack(
    in engine: Engine
  ) async throws {
    let fixture = try await PINVerifierFixture(engine)
    for key in ["a", "b", "c", "d"] { try await fixture.cut(fixture.attempt(key)) }
    #expect(try await fixture.failures() == 4)
    let counts = try await fixture.temporary.store.read {
      try $0.profile(profileID, on: client)?.knowledge?.counts(of: profileID, limit: 3)
    }
    #expect(counts == ProfileFailureCounts(profileID: "PROF01", max: 3, previous: 3))
    // These attempts got no reply, so one more is verified; it must be correct.
    #expect(try await fixture.ask(fixture.attempt("e"), isRight: false) == 403)
  }

  @Test("After a correct PIN the count begins at zero", arguments: Engine.allCases)
  func afterACorrectPINTheCountBeginsAtZero(in engine: Engine) async throws {
    let fixture = try await PINVerifierFixture(engine)
    try await fixture.cut(fixture.attempt("a"))
    #expect(try await fixture.ask(fixture.attempt("b"), isRight: true) == 200)
    #expect(try await fixture.failures() == 0)
    #expect(try await fixture.ask(fixture.attempt("a"), isRight: false) == 422)
    #expect(try await fixture.failures() == 1)
  }

  @Test("A profile that goes away in between", arguments: Engine.allCases) func aProfileThatGoesAwayInBetween(
    in engine: Engine
  ) async throws {
    let fixture = try await PINVerifierFixture(engine)
    await #expect(throws: PINAttemptVerifier.VerificationError.overtaken) {
      _ = try await fixture.verifier.verify(fixture.attempt("a")) { _ in
        #expect(throws: Never.self) { try fixture.deleteProfile() }
        return true
      } apply: { _, _ in
        Issue.record("judged")
        return .init()
      }
    }
  }

  /// Fails if the result is rolled back because its own reply cannot be stored: the limit would never apply.
  @Test("A denial with the key of an attempt does not undo its result", arguments: Engine.allCases)
  func denialWithTheSameKey(in engine: Engine) async throws {
    let fixture = try await PINVerifierFixture(engine)
    for (key, status) in [("a", 422), ("b", 422), ("c", 403)] {
      let reply = try await fixture.verifier.verify(fixture.attempt(key)) { _ in
        #expect(throws: Never.self) {
          try fixture.change {
            try $0.insert(
              StoredReply(requestHash: [1], status: 200, body: []), key: key, clientID: client, now: Timestamp(0))
          }
        }
        return false
      } apply: { _, outcome in
        .init(
          reply: StoredReply(requestHash: [0], status: Problem(outcome, issuer: "https://a")?.status ?? 200, body: []))
      }
      #expect(reply?.status == status)
      #expect(try await fixture.temporary.store.read { try $0.storedReply(key, of: client)?.status } == 200)
    }
    #expect(try await fixture.failures() == nil)
  }

  @Test("Pending profiles expire", arguments: Engine.allCases) func pendingProfilesExpire(in engine: Engine)
    async throws
  {
    let fixture = try await PINVerifierFixture(engine)
    let due = try await fixture.temporary.store.write { database -> [Timestamp?] in
      let before = try database.nextDue()
      try database.run("UPDATE knowledge SET state = 'pending'")
      let after = try database.nextDue()
      #expect(try database.expireProfiles(now: Timestamp(599_999)) == Effects())
      let effects = try database.expireProfiles(now: Timestamp(600_000))
      #expect(effects.notices.map(\.event) == [DeviceEvent(.profileRevoked, profileID: "PROF01")])
      return [before, after, try database.nextDue()]
    }
    #expect(due == [nil, Timestamp(600_000), nil])
  }

  @Test("One refresh token for one profile", arguments: Engine.allCases) func oneRefreshTokenForOneProfile(
    in engine: Engine
  ) async throws {
    let fixture = try await PINVerifierFixture(engine)
    let hasher = KeyedHasher(SecretBytes(copying: [UInt8](repeating: 1, count: 32)))
    let (one, other) = (
      try NewKnowledgeKey(clientID: client, profileID: profileID, hasher: hasher),
      try NewKnowledgeKey(clientID: client, profileID: profileID, hasher: hasher)
    )
    #expect(one.publicKey != other.publicKey && one.refreshTokenHash != other.refreshTokenHash)
    // A proposal does not replace an active verifier.
    #expect(try await fixture.temporary.store.write { try $0.propose(one, nonce: "m", now: Timestamp(0)) } == false)
    #expect(
      try await fixture.temporary.store.read { try $0.profile(profileID, on: client)?.knowledge?.publicKey }
        == fixture.key)
  }
}

/// A request that needs a PIN, in several versions.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RequestVersionTests {
  private func transaction() -> Transaction {
    let request = ApprovalRequest(
      iss: "https://a", clientID: "C1", profileID: "PROF01", transactionID: "t1", type: "payment",
      method: .pushWithPIN, message: nil, pushMessage: "Pay", nonce: "bm9uY2U", sentAtMs: 0, expiresInMs: 60_000)
    var transaction = Transaction.sample()
    transaction.request = JSON.encode(request)
    return transaction
  }

  private func counts(_ previous: Int) -> ProfileFailureCounts {
    ProfileFailureCounts(profileID: "PROF01", max: 10, previous: previous)
  }

  @Test("Every wording that was sealed is the request") func everyWordingThatWasSealedIsTheRequest() throws {
    var transaction = transaction()
    var hashes = [SHA256.hash(transaction.request)]
    for previous in 0..<10 {
      transaction = try transaction.reissued(counts: counts(previous))
      #expect(try transaction.reissued(counts: counts(previous)) == transaction)
      hashes.append(SHA256.hash(transaction.request))
    }
    #expect(hashes.allSatisfy(transaction.wasIssued))
    #expect(!transaction.wasIssued([]) && !transaction.wasIssued(SHA256.hash([])))
    #expect(!transaction.wasIssued(Array(transaction.formerRequests.dropFirst(1).prefix(32))))
  }

  @Test("Not more than sixteen are kept") func notMoreThanSixteenAreKept() throws {
    var transaction = transaction()
    let first = SHA256.hash(transaction.request)
    for round in 0..<30 { transaction = try transaction.reissued(counts: counts(round % 2)) }
    #expect(transaction.formerRequests.count == 16 * 32)
    #expect(!transaction.wasIssued(first) && transaction.wasIssued(SHA256.hash(transaction.request)))
  }
}
