// SPDX-License-Identifier: Apache-2.0

/// The server's database.
struct Store: Sendable {
  let database: any SQLDatabase

  init(_ database: any SQLDatabase) { self.database = database }

  /// Opens the embedded database, one SQLite file, and creates or updates its tables.
  init(path: String) throws { self.init(try SQLiteDatabase(path: path)) }

  func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await database.read { try body(Database($0)) }
  }

  func write<Value: Sendable>(_ change: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await database.write { try change(Database($0)) }
  }

  func close() throws { try database.close() }
}
