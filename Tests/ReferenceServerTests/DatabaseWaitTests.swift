// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import RecordedLog
import ServerTestSupport
import Synchronization
import Testing

@testable import ReferenceServer
@testable import TokenServerStore

/// For which database a server waits when it starts.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct DatabaseWaitTests {
  private final class Attempts: Sendable {
    let count = Atomic<Int>(0)
    let pauses = Mutex<[Duration]>([])
  }

  @Test("The pauses double up to eight seconds; the log has each reason and the end of the wait")
  func pauses() async throws {
    let (temporary, log, attempts) = (try TemporaryStore(), RecordedLog(), Attempts())
    let wait = DatabaseWait(log: log.logger) { pause in attempts.pauses.withLock { $0.append(pause) } }
    _ = try await wait.store { [store = temporary.store] in
      guard attempts.count.add(1, ordering: .relaxed).newValue > 6 else {
        let isReached = attempts.count.load(ordering: .relaxed) > 4
        throw isReached
          ? StorageUnavailableError(reason: "SQLSTATE 25006", description: "read-only")
          : StorageUnavailableError(reason: "no connection", description: "refused")
      }
      return store
    }
    let pauses = attempts.pauses.withLock { $0 }
    #expect(pauses == [1, 2, 4, 8, 8, 8].map { Duration.seconds($0) })
    try #require(log.all.count == 3, "\(log.all)")
    #expect(log.all[0].contains("refused") && log.all[1].contains("read-only"))
    #expect(log.all[2] == "the database can be used")
  }

  @Test("What waiting does not change ends the start at once") func otherErrors() async throws {
    let errors: [any Error] = [
      StorageUnavailableError.laterVersion, PostgreSQLError(state: "28P01", message: ""),
      PostgreSQLError(state: "57014", message: "").unavailable,
    ]
    for error in errors {
      let (log, attempts) = (RecordedLog(), Attempts())
      let wait = DatabaseWait(log: log.logger) { pause in attempts.pauses.withLock { $0.append(pause) } }
      await #expect(throws: (any Error).self) {
        _ = try await wait.store {
          // The second attempt must end the test.
          guard attempts.count.add(1, ordering: .relaxed).newValue == 1 else { throw CancellationError() }
          throw error
        }
      }
      let pauses = attempts.pauses.withLock { $0 }
      #expect(pauses.isEmpty && log.all.isEmpty, "\(error)")
    }
  }

  @Test("A database that is out of reach, or is starting, is unavailable") func unavailable() throws {
    let starting = try StartingDatabase()
    defer { starting.end() }
    for (port, reason) in [(1, "refused"), (starting.port, "is starting up")] {
      let address = try PostgreSQLAddress("postgresql://a@127.0.0.1:\(port)/b?sslmode=disable&gssencmode=disable")
      let error = #expect(throws: StorageUnavailableError.self) { _ = try Store(address, connections: 1) }
      #expect(error?.description.contains(reason) == true && error?.mayPass == true, "\(String(describing: error))")
    }
  }

  @Test("A database that refuses this server is not unavailable") func refused() throws {
    let url = try TestPostgreSQL.newDatabase()
    TestPostgreSQL.drop(url)
    let address = try PostgreSQLAddress(url)
    let error = #expect(throws: PostgreSQLError.self) { _ = try Store(address, connections: 1) }
    #expect(error?.description.contains("does not exist") == true, "\(String(describing: error))")
  }
}

/// Refuses each connection as PostgreSQL does while it starts.
private final class StartingDatabase: Sendable {
  let port: Int
  private let descriptor: Int32

  init() throws {
    (descriptor, port) = try listen(at: "127.0.0.1")
    let fields = ["SFATAL", "VFATAL", "C57P03", "Mthe database system is starting up"].map { Array($0.utf8) + [0] }
    let body = Array(fields.joined()) + [0]
    let response = [UInt8(ascii: "E"), 0, 0, 0, UInt8(body.count + 4)] + body
    Thread.detachNewThread { [descriptor] in
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        var request = [UInt8](repeating: 0, count: 4096)
        _ = recv(connection, &request, request.count, 0)
        _ = send(connection, response, response.count, Int32(MSG_NOSIGNAL))
        close(connection)
      }
    }
  }

  func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
