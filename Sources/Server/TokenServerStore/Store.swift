// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import TokenServerCore

/// The server's database.
package struct Store: Sendable {
  let database: any SQLDatabase
  /// Nil: no other server uses the database.
  package let sharedBy: Sharing?
  private let keyedMutex = KeyedMutex()

  /// A server among several that use a database.
  package struct Sharing: Sendable {
    let address: PostgreSQLAddress
    /// The id of this process.
    package let server: String
  }

  init(_ database: any SQLDatabase, sharedBy: Sharing? = nil) {
    self.database = database
    self.sharedBy = sharedBy
  }

  /// Opens the embedded database, one SQLite file, and creates or updates its tables.
  package init(path: String) throws { self.init(try SQLiteDatabase(path: path)) }

  /// Connects to a PostgreSQL database, and creates or updates its tables. Other servers may use it too.
  /// - Parameter connections: the maximum number of concurrent transactions.
  package init(_ address: PostgreSQLAddress, connections: Int) throws {
    self.init(
      try PostgreSQLDatabase(address, connections: connections),
      sharedBy: Sharing(address: address, server: Random.bytes(8).lowercaseHex))
  }

  /// Runs `body` while no other task, of this or another server on the database, does so with the same name.
  /// - Throws: `StorageUnavailableError` if that takes more than ten seconds; the error of `body`.
  package func exclusively<Value: Sendable>(
    _ name: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await keyedMutex.withLock(name) {
      guard let server = sharedBy?.server else { return try await body() }
      try await takeLease(name, owner: server)
      let result: Result<Value, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      // If this fails, the lease ends when this server takes it again, or ends.
      try? await write { try $0.endLease(name, owner: server) }
      return try result.get()
    }
  }

  private func takeLease(_ name: String, owner: String) async throws {
    let deadline = ContinuousClock.now + .seconds(10)
    var pause = Duration.milliseconds(5)
    while try await !write({ try $0.takeLease(name, owner: owner, now: ServerClock.system.now()) }) {
      guard ContinuousClock.now < deadline else {
        throw StorageUnavailableError(reason: "busy", description: "another server verifies attempts for \(name)")
      }
      try await Task.sleep(for: pause * Double.random(in: 0.5..<1.5))
      pause = min(pause * 2, .milliseconds(100))
    }
  }

  /// Wakes the other servers after a change with events. An engine without NOTIFY lets them find the events when they
  /// look the next time, within a second.
  package func notifyServers() async { try? await write { try $0.notifyServers() } }

  /// Calls `ring` when another server, or a command, may have posted events.
  package func listen(_ ring: @escaping @Sendable () -> Void) throws -> PostgreSQLListener? {
    try sharedBy.map { try PostgreSQLListener(to: $0.address, channel: SharedEvent.channel, ring) }
  }

  package func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await database.read { try body(Database($0)) }
  }

  package func write<Value: Sendable>(_ change: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await database.write { try change(Database($0)) }
  }

  /// The store for the core.
  package var records: any RecordStore { CoreStore(store: self) }

  package func close() throws { try database.close() }
}

private struct CoreStore: RecordStore {
  let store: Store

  func exclusively<Value: Sendable>(
    _ name: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await store.exclusively(name, body)
  }

  func read<Value: Sendable>(_ body: @escaping @Sendable (any ServerRecords) throws -> Value) async throws -> Value {
    try await store.read { try body($0) }
  }

  func write<Value: Sendable>(_ change: @escaping @Sendable (any ServerRecords) throws -> Value) async throws -> Value {
    try await store.write { try change($0) }
  }
}
