// SPDX-License-Identifier: Apache-2.0

/// The tables in PostgreSQL: those of `Schema`, and the ones that several servers share. A released migration is never
/// changed; a later version adds one. Every table has a `rowid`, as in SQLite.
enum PostgreSQLSchema {
  static let migrations = [
    ("1: all tables", PostgreSQLTables.all),
    ("2: delivery reports", ["ALTER TABLE mobile_auth_transaction ADD COLUMN delivered_at_ms BIGINT"]),
    ("3: former pepper", FormerPepperSchema.statements(number: "BIGINT")),
    ("4: indexes", IndexSchema.statements),
  ]

  /// For a statement of a migration. Longer than any takes: the system notices a connection that is lost.
  private static let timeLimit = Duration.seconds(86_400)

  /// Creates or updates the tables. Several servers may do so at the same time.
  /// - Parameter count: of the migrations, the earliest first; fewer than all make the tables of an earlier version.
  static func migrate(_ connection: PostgreSQLConnection, with count: Int = migrations.count) throws {
    for attempt in 1... {
      do { return try migrateOnce(connection, with: count) } catch let error as PostgreSQLError {
        _ = try? connection.run("ROLLBACK")
        guard error.isConcurrentCreation, attempt < 10 else { throw error.asStorageError }
      }
    }
  }

  private static func migrateOnce(_ connection: PostgreSQLConnection, with count: Int) throws {
    try connection.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
    // What changes a large table takes long. What waits for a lock keeps requests waiting behind it, at each server.
    try connection.run("SET LOCAL statement_timeout = 0")
    try connection.run("SET LOCAL lock_timeout = '5s'")
    try connection.run("CREATE TABLE IF NOT EXISTS schema_migration (name TEXT NOT NULL PRIMARY KEY)")
    let names = try connection.run("SELECT name FROM schema_migration")
    let done = try Set((0..<names.rowCount).map { try PostgreSQLRow(result: names, row: $0).text("name") })
    guard done.isSubset(of: migrations.map(\.0)) else { throw StorageUnavailableError.laterVersion }
    for (name, statements) in migrations.prefix(count) where !done.contains(name) {
      for statement in statements { try connection.run(statement, within: timeLimit) }
      _ = try connection.run("INSERT INTO schema_migration (name) VALUES (?)", [.text(name)])
    }
    try connection.run("COMMIT")
  }
}
