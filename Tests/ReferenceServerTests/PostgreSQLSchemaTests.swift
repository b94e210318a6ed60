// SPDX-License-Identifier: Apache-2.0
import ServerTestSupport
import Testing

@testable import TokenServerStore

/// The tables of earlier versions, and the settings of a database that connections must not take over.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PostgreSQLSchemaTests {
  private static let columns = """
    SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
    WHERE table_schema = current_schema() ORDER BY table_name, column_name
    """

  @Test(
    "A database of an earlier version is updated: the tables of a new one, and its own rows",
    arguments: 1..<PostgreSQLSchema.migrations.count)
  func update(from version: Int) throws {
    let url = try TestPostgreSQL.newDatabase()
    defer { TestPostgreSQL.drop(url) }
    let new = try TemporaryStore(.postgreSQL)
    try PostgreSQLSchema.migrate(PostgreSQLConnection(to: PostgreSQLAddress(url)), with: version)
    let rows = "SELECT user_id, expires_at_ms FROM activation_code"
    try TestPostgreSQL.query("INSERT INTO activation_code (hash, user_id, expires_at_ms) VALUES ('x', 'a', 7)", in: url)

    for _ in 1...2 {
      try Store(PostgreSQLAddress(url), connections: 1).close()
      #expect(try TestPostgreSQL.query(Self.columns, in: url) == TestPostgreSQL.query(Self.columns, in: new.url ?? ""))
      #expect(try TestPostgreSQL.query(rows, in: url) == "a|7\n")
    }
    #expect(try TestPostgreSQL.query("SELECT needs_former_pepper FROM activation_code", in: url) == "0\n")
  }

  @Test("A migration that waits for a table is given up soon, may pass, and succeeds when the table is free")
  func lockedTable() throws {
    let url = try TestPostgreSQL.newDatabase()
    defer { TestPostgreSQL.drop(url) }
    let (reader, connection) = (
      try PostgreSQLConnection(to: PostgreSQLAddress(url)), try PostgreSQLConnection(to: PostgreSQLAddress(url))
    )
    try PostgreSQLSchema.migrate(connection, with: 1)
    // As pg_dump does.
    try reader.run("SET idle_in_transaction_session_timeout = 0")
    try reader.run("BEGIN")
    try reader.run("LOCK TABLE mobile_auth_transaction IN ACCESS SHARE MODE")
    let error = #expect(throws: StorageUnavailableError.self) { try PostgreSQLSchema.migrate(connection) }
    #expect(error?.reason == "SQLSTATE 55P03" && error?.mayPass == true, "\(String(describing: error))")
    try reader.run("ROLLBACK")
    try PostgreSQLSchema.migrate(connection)
    let names = try TestPostgreSQL.query("SELECT name FROM schema_migration ORDER BY name", in: url)
    #expect(names == PostgreSQLSchema.migrations.map { "\($0.0)\n" }.joined())
  }

  @Test("A migration takes as long as it needs, longer than other statements may") func slowMigration() throws {
    let url = try TestPostgreSQL.newDatabase()
    defer { TestPostgreSQL.drop(url) }
    let connection = try PostgreSQLConnection(to: PostgreSQLAddress(url))
    try PostgreSQLSchema.migrate(connection, with: 1)
    try TestPostgreSQL.query(
      """
      CREATE FUNCTION pause() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(18); END $$;
      CREATE EVENT TRIGGER pause ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION pause()
      """, in: url)
    let start = ContinuousClock.now
    try PostgreSQLSchema.migrate(connection, with: 2)
    #expect(ContinuousClock.now - start > PostgreSQLConnection.timeLimit)
    // The other statements of the connection keep their limits.
    let value = try connection.run("SELECT current_setting('statement_timeout') AS value")
    #expect(try PostgreSQLRow(result: value, row: 0).text("value") == "15s")
  }

  @Test(
    "A change waits for the disk, also where the database's default is not to; a longer wait remains",
    arguments: [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")])
  func synchronousCommit(configured: String, used: String) throws {
    let url = try TestPostgreSQL.newDatabase()
    defer { TestPostgreSQL.drop(url) }
    try TestPostgreSQL.query(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = \(configured)', current_database()); END $$",
      in: url)
    let connection = try PostgreSQLConnection(to: PostgreSQLAddress(url))
    let value = try connection.run("SELECT current_setting('synchronous_commit') AS value")
    #expect(try PostgreSQLRow(result: value, row: 0).text("value") == used)
  }
}
