// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Threads
import TokenServerCore

/// A PostgreSQL database, which several servers may share. A change is a serializable transaction; a read is a
/// read-only one on a snapshot (REPEATABLE READ); a single statement is committed by itself (READ COMMITTED). Each runs
/// on one of several connections, each with a thread of its own, and is repeated if it conflicts with another one.
final class PostgreSQLDatabase: SQLDatabase {
  /// The maximum number of transactions that wait for a connection; more are refused.
  private static let longestQueue = 4096
  private static let busy = StorageUnavailableError.busy("too many transactions wait for the database")

  private let jobs = JobQueue<PostgreSQLSession>(limit: longestQueue)
  private let states: [PostgreSQLSession.State]
  private let threads: [LoopThread]
  private let patience: Duration

  /// Creates or updates the tables.
  /// - Throws: `StorageUnavailableError`, also if the database cannot be reached or does not accept connections yet;
  ///   `PostgreSQLError` if it refuses this program's connection or its tables.
  static func migrate(_ address: PostgreSQLAddress) throws {
    try PostgreSQLSchema.migrate(connection(to: address))
  }

  /// Whether the database has the keys of a server, of whichever version. Changes nothing.
  /// - Throws: as `migrate`.
  static func hasServerKeys(_ address: PostgreSQLAddress) throws -> Bool {
    do {
      return try connection(to: address).run("SELECT 1 FROM server_key LIMIT 1").rowCount > 0
    } catch let error as PostgreSQLError {
      if error.isMissingTable { return false }
      throw error.asStorageError
    }
  }

  private static func connection(to address: PostgreSQLAddress) throws -> PostgreSQLConnection {
    do { return try PostgreSQLConnection(to: address) } catch let error as PostgreSQLError {
      if PostgreSQLConnection.isUnavailable(at: address) { throw error.unavailable }
    }
    // It may accept connections only since then.
    return try PostgreSQLConnection(to: address)
  }

  /// Each connection is opened at its first transaction.
  /// - Parameters:
  ///   - connections: at least 1.
  ///   - patience: the time limit for all repetitions of a transaction, and for the wait before it begins.
  init(_ address: PostgreSQLAddress, connections: Int, patience: Duration) {
    self.patience = patience
    states = (0..<max(1, connections)).map { _ in PostgreSQLSession.State() }
    threads = states.map { [jobs] state in
      LoopThread(named: "postgresql") {
        let (session, thread) = (PostgreSQLSession(address, state), DispatchSemaphore(value: 0))
        while let job = jobs.next(for: thread) { job(session) }
      }
    }
  }

  func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLTransaction) throws -> Value) async throws -> Value {
    try await perform(.read, body)
  }

  /// Commits each change at once, also one that is not urgent: the database itself lets commits share a wait for its
  /// disk.
  func write<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value {
    try await perform(.write, change)
  }

  func writeStatement<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value {
    try await perform(.statement, change)
  }

  var waiting: Int { jobs.count }

  var connections: ConnectionCounts? {
    states.reduce(into: ConnectionCounts()) { counts, state in
      if state.isUsed { counts.used += 1 } else if state.isOpen { counts.idle += 1 }
    }
  }

  func close() {
    jobs.end()
    for thread in threads { thread.join() }
  }

  private func perform<Value: Sendable>(
    _ access: PostgreSQLSession.Access, _ body: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value {
    let asked = ContinuousClock.now
    return try await withCheckedThrowingContinuation { continuation in
      let isQueued = jobs.add { [patience] session in
        let waited = ContinuousClock.now - asked
        ServerMetrics.countDatabaseWait(of: waited)
        // The caller has given up, or will soon.
        guard waited < patience else { return continuation.resume(throwing: Self.busy) }
        continuation.resume(
          with: Result { try session.transaction(access, within: patience, body) })
      }
      if !isQueued { continuation.resume(throwing: Self.busy) }
    }
  }
}
