// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

/// The server's database.
package struct Store: Sendable {
  let database: any SQLDatabase

  init(_ database: any SQLDatabase) { self.database = database }

  /// Opens the embedded database, one SQLite file, and creates or updates its tables.
  package init(path: String) throws { self.init(try SQLiteDatabase(path: path)) }

  /// Connects to a PostgreSQL database, and creates or updates its tables. Other servers may use it too.
  /// - Parameter connections: the maximum number of concurrent transactions.
  package init(_ address: PostgreSQLAddress, connections: Int) throws {
    self.init(try PostgreSQLDatabase(address, connections: connections))
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

  func read<Value: Sendable>(_ body: @escaping @Sendable (any ServerRecords) throws -> Value) async throws -> Value {
    try await store.read { try body($0) }
  }

  func write<Value: Sendable>(_ change: @escaping @Sendable (any ServerRecords) throws -> Value) async throws -> Value {
    try await store.write { try change($0) }
  }
}
