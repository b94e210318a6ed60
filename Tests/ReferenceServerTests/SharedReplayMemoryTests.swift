// SPDX-License-Identifier: Apache-2.0
import Testing
import TokenServerCore

@testable import TokenServerHTTP
@testable import TokenServerStore

/// Two servers on one database.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SharedReplayMemoryTests {
  private let temporary: TemporaryStore

  init() throws { temporary = try TemporaryStore(.postgreSQL) }

  private func server(capacity: Int, share: Int) -> SharedReplayMemory {
    SharedReplayMemory(
      store: temporary.store, clock: .system, lifetime: .seconds(300),
      own: ReplayCache(lifetime: .seconds(300), capacity: capacity, share: share))
  }

  @Test("A proof is used once at all servers, and each limits the number of a device") func share() async throws {
    let (one, other) = (server(capacity: 10, share: 2), server(capacity: 10, share: 2))
    #expect(try await one.remember("a", of: "x") == .new)
    #expect(try await one.remember("a", of: "x") == .seen)
    #expect(try await other.remember("a", of: "x") == .seen)
    #expect(try await other.remember("a", of: "y") == .new)
    #expect(try await one.remember("b", of: "x") == .new)
    #expect(try await one.remember("c", of: "x") == .tooMany)
    #expect(try await one.remember("c", of: "y") == .new)
  }

  @Test("A server whose own memory is full goes on with the database") func full() async throws {
    let server = server(capacity: 2, share: 2)
    for identifier in ["a", "b", "c", "d"] { #expect(try await server.remember(identifier, of: identifier) == .new) }
    for identifier in ["a", "b", "c", "d"] { #expect(try await server.remember(identifier, of: identifier) == .seen) }
  }
}
