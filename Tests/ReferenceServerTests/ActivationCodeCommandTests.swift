// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerStore

/// `token-server activation-code`, beside other changes.
@Suite(.timeLimit(.minutes(1)), .mayBlock) struct ActivationCodeCommandTests {
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
}
