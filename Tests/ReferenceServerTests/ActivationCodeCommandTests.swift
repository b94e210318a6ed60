// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import ReferenceProtocol
import ServerTestSupport
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerStore

/// `token-server activation-code`, and the lists of users and fleet tokens.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ActivationCodeCommandTests {
  @Test("No code is stored for a user who does not exist at that moment") func deletedUser() async throws {
    let temporary = try TemporaryStore()
    let store = temporary.store
    let (user, now, end) = (UserID("alice"), Timestamp(0), Timestamp(1000))
    let (before, after) = ([1] as [UInt8], [2] as [UInt8])
    _ = try await store.write { try $0.insertUser(user, now: now) }
    try await store.write { try ActivationCodeCommand.insert(before, of: "alice", until: end, into: $0) }
    _ = try await store.write { try $0.deleteUser(user, now: now) }
    await #expect(throws: CommandError.self) {
      try await store.write { try ActivationCodeCommand.insert(after, of: "alice", until: end, into: $0) }
    }
    for hash in [before, after] {
      let isStored = try await store.read { try $0.activationCode(hash, now: now) != nil }
      #expect(!isStored)
    }
    // The file is there until now.
    withExtendedLifetime(temporary) {}
  }

  @Test("Codes that have not expired are listed, and deleted for one user or for all", arguments: Engine.allCases)
  func listAndDelete(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let now = Timestamp(10)
    try await temporary.store.write { database in
      for (hash, user, end) in [(1, "bob", 30), (2, "alice", 40), (3, "alice", 20), (4, "alice", 10)] {
        _ = try database.insertUser(UserID(user), now: Timestamp(1))
        try database.insertActivationCode([UInt8(hash)], userID: UserID(user), expiresAt: Timestamp(Int64(end)))
      }
      try database.bindActivationCode([3], to: ClientID("C1"), profile: nil)
    }
    let codes = try await temporary.store.read { try $0.activationCodes(now: now) }
    #expect(codes.map { $0.code.userID.text } == ["alice", "alice", "bob"])
    #expect(codes.map { $0.code.clientID?.text } == ["C1", nil, nil])
    #expect(codes.map { $0.expiresAt.milliseconds } == [20, 40, 30])
    let counts = try await temporary.store.write { database in
      try [database.deleteActivationCodes(of: UserID("alice")), database.activationCodes(now: now).count]
    }
    #expect(counts == [3, 1])
    let rest = try await temporary.store.write { database in
      try [database.deleteActivationCodes(of: nil), database.activationCodes(now: now).count]
    }
    #expect(rest == [1, 0])
  }

  @Test("Users and fleet tokens are listed with the number of their devices", arguments: Engine.allCases)
  func usersAndFleetTokens(in engine: Engine) async throws {
    let temporary = try TemporaryStore(engine)
    let (fleet, client, now) = ([4] as [UInt8], ClientID("C1"), Timestamp(1))
    let key = try P256PrivateKey().publicKey
    let registration = RegistrationRequest(
      clientName: "n", softwareID: "s", softwareVersion: "1", key: JWK(key),
      capabilities: .init(display: .none, keypad: false, button: true, led: .mono))
    try await temporary.store.write { database in
      for user in ["bob", "alice"] { _ = try database.insertUser(UserID(user), now: now) }
      _ = try database.insertFleetToken(fleet, name: "boards", now: now)
      _ = try database.insertFleetToken([5], name: "another", now: now)
      try database.insertDevice(id: client, registration: registration, key: key, credential: fleet, now: now)
      try database.insertProfile(ProfileID("PROF01"), on: client, userID: UserID("bob"), activation: [], now: now)
    }
    let (users, tokens) = try await temporary.store.read { (try $0.users(), try $0.fleetTokens()) }
    #expect(users.map { "\($0.id) \($0.devices)" } == ["alice 0", "bob 1"])
    #expect(tokens.map { "\($0.name) \($0.devices)" } == ["another 0", "boards 1"])
    _ = try await temporary.store.write { try $0.deleteDevice(client, now: now) }
    let later = try await temporary.store.read { (try $0.users(), try $0.fleetTokens()) }
    #expect(later.0.map { $0.devices } == [0, 0] && later.1.map { $0.devices } == [0, 0])
  }

  @Test("A deleted code is refused; what to delete must be named") func deletedCode() throws {
    let server = try TokenServerProcess()
    let code = try server.activationCode(for: "alice")
    let made = try server.admin("activation-code", "add", "alice")
    #expect((made["code"] as? String)?.count == 13)
    #expect(try server.admin("activation-code", "delete", "alice")["deleted"] as? Int == 2)
    try DeviceClient(server).register(code).expect(401)
    let program = try BuiltProgram.path("token-server")
    let wrong: [([String], Int32)] = [
      (["delete"], 64), (["delete", "alice", "--all"], 64), (["delete", "nobody"], 1),
    ]
    for (arguments, status) in wrong {
      let output = try run(program, ["activation-code"] + arguments + ["--directory", server.directory])
      #expect(output.status == status, "\(arguments)")
    }
    let list = try run(program, ["activation-code", "list", "--directory", server.directory])
    #expect(list.text == "no activation codes\n")
    #expect(try server.admin("activation-code", "delete", "--all")["deleted"] as? Int == 0)
  }
}
