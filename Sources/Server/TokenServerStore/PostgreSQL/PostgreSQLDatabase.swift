// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Threads

/// A PostgreSQL database, which several servers may share. Each transaction is serializable and runs on one of several
/// connections, each with a thread of its own. A transaction that conflicts with another one is repeated.
final class PostgreSQLDatabase: SQLDatabase {
  private enum Access: String {
    case read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    case write = "BEGIN ISOLATION LEVEL SERIALIZABLE"
  }

  /// The maximum number of transactions that wait for a connection; more are refused.
  private static let longestQueue = 4096
  /// For all repetitions of a transaction, and before it begins.
  private static let patience = Duration.seconds(10)
  private static let busy = StorageUnavailableError(
    reason: "busy", description: "too many transactions wait for the database")

  private let address: PostgreSQLAddress
  private let jobs = JobQueue<PostgreSQLSession>(limit: longestQueue)
  private let threads: [LoopThread]

  /// Connects once, and creates or updates the tables.
  /// - Parameter connections: at least 1.
  init(_ address: PostgreSQLAddress, connections: Int) throws {
    self.address = address
    try PostgreSQLSchema.migrate(PostgreSQLConnection(to: address))
    threads = (0..<max(1, connections)).map { [jobs] _ in
      LoopThread(named: "postgresql") {
        let session = PostgreSQLSession(address)
        while let job = jobs.next() { job(session) }
      }
    }
  }

  func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLTransaction) throws -> Value) async throws -> Value {
    try await perform(.read, body)
  }

  func write<Value: Sendable>(_ change: @escaping @Sendable (any SQLTransaction) throws -> Value) async throws -> Value
  {
    try await perform(.write, change)
  }

  var waiting: Int { jobs.count }

  func close() throws {
    jobs.end()
    for thread in threads { thread.join() }
  }

  private func perform<Value: Sendable>(
    _ access: Access, _ body: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value {
    let latest = ContinuousClock.now + Self.patience
    return try await withCheckedThrowingContinuation { continuation in
      let isQueued = jobs.add { session in
        // Whoever asked has given up, or will soon.
        guard ContinuousClock.now < latest else { return continuation.resume(throwing: Self.busy) }
        continuation.resume(
          with: Result { try session.transaction(access.rawValue, within: Self.patience, body) })
      }
      if !isQueued { continuation.resume(throwing: Self.busy) }
    }
  }
}
