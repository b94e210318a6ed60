// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import Secrets
import Testing

@testable import TokenServerCore
@testable import TokenServerStore

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct KeyedHasherTests {
  @Test("Purposes and peppers differ") func purposesAndPeppersDiffer() {
    let one = KeyedHasher(SecretBytes(copying: [UInt8](repeating: 1, count: 32)))
    let other = KeyedHasher(SecretBytes(copying: [UInt8](repeating: 2, count: 32)))
    let hashes = [one, other].flatMap { pepper in KeyedHasher.Purpose.allCases.map { pepper.hash("secret", for: $0) } }
    #expect(Set(hashes).count == 2 * KeyedHasher.Purpose.allCases.count)
    #expect(one.hash("secret", for: .portalSecret) == one.hash("secret", for: .portalSecret))
  }

  @Test("After a rotation there are two hashes, the current one first; keys open with the current pepper alone")
  func formerPepper() throws {
    let (old, new) = (SecretBytes(copying: [UInt8](repeating: 1, count: 32)), Random.secret(32))
    let both = KeyedHasher(new, former: old)
    for purpose in KeyedHasher.Purpose.allCases {
      #expect(both.hashes("secret", for: purpose) == [new, old].map { KeyedHasher($0).hash("secret", for: purpose) })
      #expect(KeyedHasher(old).hashes("secret", for: purpose) == [KeyedHasher(old).hash("secret", for: purpose)])
    }
    let kept = KeyedHasher(new, former: old, topicKey: KeyedHasher(old).topicKey)
    #expect(kept.hash("device", for: .mailbox) == KeyedHasher(old).hash("device", for: .mailbox))
    #expect(kept.hash("key", for: .proofNonces) == KeyedHasher(new).hash("key", for: .proofNonces))
    let sealed = try KeyedHasher(old).seal(Random.secret(9), of: "F")
    #expect(throws: CryptographyError.notAuthentic) { try both.open(sealed, of: "F") }
    #expect(throws: CryptographyError.notAuthentic) { try KeyedHasher(old).open(sealed, of: "G") }
    #expect(try KeyedHasher(old).open(sealed, of: "F").count == 9)
  }
}

/// What a rotation of the pepper changes in the database, in each engine. The first hash of a secret is the current
/// one.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct FormerPepperTests {
  private static let now = Timestamp(1000)
  private static let code: [[UInt8]] = [[1], [2]]
  private static let fleet: [[UInt8]] = [[3], [4]]

  /// A database before its rotation.
  private func filled(_ engine: Engine) async throws -> TemporaryStore {
    let temporary = try TemporaryStore(engine)
    try await temporary.store.write { database in
      for key in ["A", "B"] { try database.insertServerKey(key, sealedSecret: [7], isShared: key == "A") }
      for id in ["p", "q"] {
        let client = APIClient(
          id: id, secretHash: [5], mayAuthenticate: true, mayManageDevices: true, mayIntrospect: false)
        #expect(try database.insertAPIClient(client))
      }
      try database.insertActivationCode(Self.code[1], userID: UserID("ann"), expiresAt: Timestamp(5000))
      #expect(try database.insertFleetToken(Self.fleet[1], name: "bench", now: Self.now))
      let key = try P256PrivateKey().publicKey
      let registration = RegistrationRequest(
        clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
      for (id, credential) in [("C", Self.code[1]), ("D", Self.fleet[1])] {
        try database.insertDevice(
          id: ClientID(id), registration: registration, key: key, credential: credential, now: Self.now)
      }
      try database.insertAccessToken(
        [6], clientID: ClientID("C"), profileID: nil, by: .device, expiresAt: Timestamp(5000), now: Self.now)
    }
    return temporary
  }

  private func rotate(_ store: Store) async throws {
    let isFirst = try await store.read { try $0.sealedServerKey(Database.topicKeyName) } == nil
    let result = try await store.write { database in
      try database.rotatePepper(topicKey: [9]) { key, secret in key == "B" ? nil : secret + [8] }
    }
    #expect(result.keys == (isFirst ? 2 : 3) && result.unreadable == ["B"])
    #expect(try await store.read { try $0.sealedServerKey(Database.topicKeyName) } == (isFirst ? [9] : [9, 8]))
  }

  private func use(_ store: Store, at time: Timestamp = now) async throws -> FormerPepperUse {
    try await store.read { try $0.useOfFormerPepper(now: time) }
  }

  @Test(
    "A rotation replaces keys, deletes access tokens, and notes what needs the former pepper",
    arguments: Engine.allCases)
  func rotation(engine: Engine) async throws {
    let temporary = try await filled(engine)
    let store = temporary.store
    #expect(try await use(store).isEmpty)
    try await rotate(store)
    #expect(try await store.read { try $0.sealedServerKey("A") } == [7, 8])
    #expect(try await store.read { try $0.sealedServerKey("B") } == [7])
    #expect(try await store.read { try $0.accessTokenOwner([6], now: Self.now) } == nil)
    let found = try await use(store)
    #expect(found.portals == ["p", "q"] && found.fleetTokens == ["bench"])
    #expect(found.activationCodes == 1 && found.lastExpiry == Timestamp(5000))
    #expect(try await use(store, at: Timestamp(5000)).activationCodes == 0)
  }

  @Test("The use of a secret replaces its hash wherever it is stored", arguments: Engine.allCases)
  func adoption(engine: Engine) async throws {
    let temporary = try await filled(engine)
    let store = temporary.store
    try await rotate(store)
    try await store.write { database in
      try database.adoptPortalSecret(of: "p", former: [5], current: [9])
      // The secret was replaced meanwhile.
      #expect(try database.renewAPIClient("q", secretHash: [10]))
      try database.adoptPortalSecret(of: "q", former: [5], current: [9])
      for _ in 0..<2 {
        #expect(try database.adoptActivationCode(Self.code) == Self.code[0])
        #expect(try database.adoptFleetToken(Self.fleet) == Self.fleet[0])
      }
      // Neither a code nor a token.
      #expect(try database.adoptActivationCode([[11], [12]]) == [11])
    }
    #expect(try await use(store).isEmpty)
    try await store.read { database in
      #expect(try database.apiClients().map(\.secretHash) == [[9], [10]])
      #expect(try database.activationCode(Self.code[0], now: Self.now)?.userID == UserID("ann"))
      #expect(try database.activationCode(Self.code[1], now: Self.now) == nil)
      #expect(try database.isFleetToken(Self.fleet[0]) && !database.isFleetToken(Self.fleet[1]))
      for (hashes, id) in [(Self.code, "C"), (Self.fleet, "D")] {
        #expect(try database.deviceCount(registeredWith: hashes[1], orDeletedAfter: Self.now) == 0)
        let thumbprint = try #require(try database.device(ClientID(id))?.keyThumbprint)
        #expect(try database.device(registeredWith: hashes[0], thumbprint: thumbprint)?.id == ClientID(id))
      }
    }
  }

  @Test("A used code needs the former pepper until its enrollment is complete", arguments: Engine.allCases)
  func usedCode(engine: Engine) async throws {
    let temporary = try await filled(engine)
    let store = temporary.store
    try await store.write { database in
      guard
        case .activated = try database.activate(
          Self.code[1], as: ProfileID("PROF01"), on: ClientID("C"), now: Self.now)
      else { throw CorruptRowError("activation_code", "is not accepted") }
    }
    try await rotate(store)
    #expect(try await use(store).activationCodes == 1)
    try await store.write { _ = try $0.run("UPDATE profile SET push_token = 't'") }
    #expect(try await use(store).activationCodes == 0)
    // A repetition finds the profile by the current hash.
    try await store.write { database in
      let hash = try database.adoptActivationCode(Self.code)
      guard
        case .activated = try database.activate(hash, as: ProfileID("PROF01"), on: ClientID("C"), now: Self.now)
      else { throw CorruptRowError("activation_code", "is not accepted") }
    }
  }

  @Test(
    "Without the former pepper, what needs it is refused, and a portal can get a new secret", arguments: Engine.allCases
  )
  func invalidation(engine: Engine) async throws {
    let temporary = try await filled(engine)
    let store = temporary.store
    try await rotate(store)
    try await store.write { database in
      try database.adoptPortalSecret(of: "p", former: [5], current: [9])
      try database.invalidateFormerPepper()
      #expect(try database.apiClients().map(\.secretHash) == [[9], []])
      #expect(try database.activationCode(Self.code[1], now: Self.now) == nil)
      #expect(try !database.isFleetToken(Self.fleet[1]))
    }
    #expect(try await use(store).isEmpty)
    try await rotate(store)
    #expect(try await use(store).portals == ["p"])
    #expect(try await store.write { try $0.renewAPIClient("q", secretHash: [10]) })
    #expect(try await store.read { try $0.apiClient("q")?.secretHash } == [10])
  }

  @Test("Servers count as running for ten seconds") func runningServers() async throws {
    let (file, shared) = (try TemporaryStore(), try TemporaryStore(.postgreSQL))
    #expect(try await file.store.read { try $0.runningServers(now: Self.now) } == 0)
    try await shared.store.write { _ = try $0.noteServer("s", now: Timestamp(20_000)) }
    for (time, count) in [(20_000, 1), (29_999, 1), (30_000, 0)] as [(Int64, Int)] {
      #expect(try await shared.store.read { try $0.runningServers(now: Timestamp(time)) } == count)
    }
  }
}
