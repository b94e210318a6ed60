// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import Testing

@testable import TokenServerCore
@testable import TokenServerStore

/// Which server keys stay when profiles lose or replace theirs, in each engine.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ServerKeyTests {
  private static let now = Timestamp(1000)
  private static let client = ClientID("C1")
  private static let (alice, bob) = (ProfileID("ALICE1"), ProfileID("BOB001"))
  private static let always: Set<String> = ["shared", Database.topicKeyName]

  /// A database with two profiles and a key for all of them.
  private func filled(_ engine: Engine) async throws -> TemporaryStore {
    let temporary = try TemporaryStore(engine)
    try await temporary.store.write { database in
      let key = try P256PrivateKey().publicKey
      let registration = RegistrationRequest(
        clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
        capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
      try database.insertDevice(id: Self.client, registration: registration, key: key, credential: [1], now: Self.now)
      for id in [Self.alice, Self.bob] { try Self.activate(id, in: database) }
      for name in Self.always {
        try database.insertServerKey(name, sealedSecret: [2], isShared: name == "shared")
      }
    }
    return temporary
  }

  private static func activate(_ id: ProfileID, in database: Database) throws {
    try database.insertProfile(id, on: client, userID: UserID(id.text), activation: Array(id.text.utf8), now: now)
  }

  private static func setKey(_ key: String, of id: ProfileID, in database: Database) throws {
    if try database.serverKey(key) == nil { try database.insertServerKey(key, sealedSecret: [3], isShared: false) }
    let profile = try #require(try database.profile(id, on: client))
    #expect(try database.setKeys(of: profile, certificate: [4], fingerprint: "F", serverKey: key, keyID: key))
  }

  /// The keys besides those that always stay.
  private static func keys(in database: Database) throws -> Set<String> {
    let all = Set(try database.sealedServerKeys(atMost: 99).map(\.fingerprint))
    #expect(all.isSuperset(of: always))
    return all.subtracting(always)
  }

  @Test("A key is deleted when no profile names it any more, but never the shared one", arguments: Engine.allCases)
  func replaced(engine: Engine) async throws {
    let temporary = try await filled(engine)
    try await temporary.store.write { database in
      try Self.setKey("first", of: Self.alice, in: database)
      try Self.setKey("second", of: Self.alice, in: database)
      #expect(try Self.keys(in: database) == ["second"])
      try Self.setKey("second", of: Self.bob, in: database)
      try Self.setKey("shared", of: Self.alice, in: database)
      #expect(try Self.keys(in: database) == ["second"])
      try Self.setKey("shared", of: Self.bob, in: database)
      #expect(try Self.keys(in: database) == [])
    }
  }

  @Test("A removed key stays until another one is removed or the profile is made again", arguments: Engine.allCases)
  func removed(engine: Engine) async throws {
    let temporary = try await filled(engine)
    let name = ProfileName(clientID: Self.client, id: Self.alice)
    try await temporary.store.write { database in
      try Self.setKey("first", of: Self.alice, in: database)
      try database.removeKeys(of: name)
      try Self.setKey("second", of: Self.alice, in: database)
      #expect(try Self.keys(in: database) == ["first", "second"])
      try database.removeProfile(name, now: Self.now)
      #expect(try Self.keys(in: database) == ["second"])
      try Self.activate(Self.alice, in: database)
      #expect(try Self.keys(in: database) == [])
      try Self.setKey("third", of: Self.alice, in: database)
      for _ in 0..<2 { try database.removeKeys(of: name) }
      #expect(try Self.keys(in: database) == [])
    }
  }
}
