// SPDX-License-Identifier: Apache-2.0
import SQLite

/// The tables. A released migration is never changed; a later version adds one. The PIN tables are in `PINSchema`.
enum Schema {
  static let migrations = [
    ("1: push", [accounts, access, transactions]),
    ("2: pin", [PINSchema.statements]),
    ("3: hostility", [IsolationSchema.statements]),
    ("4: introspection", [IntrospectionSchema.statements]),
    ("5: authenticators", [AuthenticatorSchema.statements]),
    ("6: callbacks by portal", [IsolationSchema.portals]),
    // NULL for devices of earlier versions, and for boards without one.
    ("7: board serial", ["ALTER TABLE device ADD COLUMN board_serial TEXT"]),
    // When it was first sent to its device in a list, or reported by it; NULL before that.
    ("8: delivery reports", ["ALTER TABLE mobile_auth_transaction ADD COLUMN delivered_at_ms INTEGER"]),
    ("9: former pepper", FormerPepperSchema.statements(number: "INTEGER")),
    ("10: indexes", IndexSchema.statements + IndexSchema.sharedServerKey),
  ]

  /// Creates or updates the tables. Several processes may do so at the same time. Foreign keys must not be enforced
  /// yet.
  /// - Parameter count: of the migrations, the earliest first; fewer than all make the tables of an earlier version.
  static func migrate(_ connection: borrowing Connection, with count: Int = migrations.count) throws {
    // Check without the write lock first: usually no migration is needed.
    guard try !missing(connection, of: count).isEmpty else { return }
    try connection.transaction { connection in
      try connection.execute("CREATE TABLE IF NOT EXISTS \(table) (identifier TEXT NOT NULL PRIMARY KEY)")
      for (name, statements) in try missing(connection, of: count) {
        do { for statement in statements { try connection.execute(statement) } } catch let error as SQLiteError {
          throw SQLiteError(call: "migration \"\(name)\"", code: error.code, message: error.message)
        }
        try connection.run("INSERT INTO \(table) (identifier) VALUES (?)", name)
      }
      // The first one is enough: a damaged file may have any number.
      try connection.query("PRAGMA foreign_key_check", []) { _, _ in
        throw CorruptRowError("a foreign key", "refers to no row")
      }
    }
  }

  /// The table of the migrations that were made has the name that the library GRDB gave it in earlier versions.
  private static let table = "grdb_migrations"

  private static func missing(
    _ connection: borrowing Connection, of count: Int
  ) throws -> [(name: String, statements: [String])] {
    let tables = try connection.rows("SELECT 1 FROM sqlite_schema WHERE name = ?", table) { _ in 1 }
    let made = try tables.isEmpty ? [] : Set(connection.rows("SELECT identifier FROM \(table)") { try $0.text(0) })
    guard made.isSubset(of: migrations.map(\.0)) else { throw StorageUnavailableError.laterVersion }
    return migrations.prefix(count).filter { !made.contains($0.0) }.map { ($0.0, $0.1) }
  }

  /// Deleted devices and profiles stay as tombstones, so that a device that reconnects gets "deregistered" and wipes
  /// itself, while unknown clients do not.
  private static let accounts = """
    CREATE TABLE user (
      id TEXT NOT NULL PRIMARY KEY,
      created_at_ms INTEGER NOT NULL
    ) STRICT;

    -- A device: one OAuth client, one installation. `credential` is the hash of the code or fleet token it registered
    -- with: the same credential and key give the same device again.
    CREATE TABLE device (
      id TEXT NOT NULL PRIMARY KEY,
      name TEXT NOT NULL,
      software_id TEXT NOT NULL,
      software_version TEXT NOT NULL,
      os_version TEXT,
      capabilities TEXT NOT NULL,
      key_x BLOB NOT NULL,
      key_y BLOB NOT NULL,
      key_thumbprint TEXT NOT NULL,
      credential BLOB NOT NULL,
      created_at_ms INTEGER NOT NULL,
      last_login_at_ms INTEGER,
      deleted_at_ms INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX device_by_credential ON device (credential, key_thumbprint) WHERE deleted_at_ms IS NULL;

    CREATE TABLE server_key (
      fingerprint TEXT NOT NULL PRIMARY KEY,
      sealed_secret BLOB NOT NULL,
      is_shared INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX shared_server_key ON server_key (is_shared) WHERE is_shared;

    -- A user on a device. `activation` is the hash of the code that made it.
    CREATE TABLE profile (
      client_id TEXT NOT NULL REFERENCES device (id),
      id TEXT NOT NULL,
      user_id TEXT NOT NULL,
      activation BLOB NOT NULL,
      created_at_ms INTEGER NOT NULL,
      certificate BLOB,
      certificate_fingerprint TEXT,
      server_key TEXT REFERENCES server_key (fingerprint),
      key_id TEXT,
      acknowledged INTEGER NOT NULL DEFAULT 0,
      push_token TEXT,
      push_transport TEXT,
      disenrolled INTEGER NOT NULL DEFAULT 0,
      deleted_at_ms INTEGER,
      PRIMARY KEY (client_id, id)
    ) STRICT;
    CREATE UNIQUE INDEX profile_by_user ON profile (user_id, client_id) WHERE deleted_at_ms IS NULL;
    """

  /// Secrets are stored only as HMACs with the pepper.
  private static let access = """
    CREATE TABLE api_client (
      id TEXT NOT NULL PRIMARY KEY,
      secret_hash BLOB NOT NULL,
      mobile_authentication INTEGER NOT NULL,
      end_user INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE activation_code (
      hash BLOB NOT NULL PRIMARY KEY,
      user_id TEXT NOT NULL,
      expires_at_ms INTEGER NOT NULL,
      client_id TEXT,
      profile_id TEXT
    ) STRICT;

    CREATE TABLE fleet_token (
      hash BLOB NOT NULL PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      created_at_ms INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE access_token (
      hash BLOB NOT NULL PRIMARY KEY,
      client_id TEXT NOT NULL,
      profile_id TEXT,
      expires_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX access_token_by_expiry ON access_token (expires_at_ms);
    """

  private static let transactions = """
    CREATE TABLE mobile_auth_transaction (
      id TEXT NOT NULL PRIMARY KEY,
      user_id TEXT NOT NULL,
      client_id TEXT NOT NULL,
      profile_id TEXT NOT NULL,
      type TEXT NOT NULL,
      method TEXT NOT NULL,
      callback_uri TEXT NOT NULL,
      message TEXT,
      nonce TEXT NOT NULL,
      request BLOB NOT NULL,
      callback_on_expiry INTEGER NOT NULL,
      created_at_ms INTEGER NOT NULL,
      expires_at_ms INTEGER NOT NULL,
      state TEXT NOT NULL,
      reason TEXT,
      bad_answers INTEGER NOT NULL DEFAULT 0,
      denial_reason TEXT,
      receipt TEXT,
      idempotency_key TEXT,
      ended_at_ms INTEGER
    ) STRICT;
    CREATE INDEX open_by_device ON mobile_auth_transaction (client_id, created_at_ms) WHERE state = 'open';
    CREATE INDEX open_by_expiry ON mobile_auth_transaction (expires_at_ms) WHERE state = 'open';
    CREATE INDEX transaction_by_end ON mobile_auth_transaction (ended_at_ms) WHERE ended_at_ms IS NOT NULL;

    -- What was said to an Idempotency-Key, to be said again.
    CREATE TABLE verdict (
      client_id TEXT NOT NULL,
      idempotency_key TEXT NOT NULL,
      request_hash BLOB NOT NULL,
      status INTEGER NOT NULL,
      body BLOB NOT NULL,
      created_at_ms INTEGER NOT NULL,
      PRIMARY KEY (client_id, idempotency_key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX verdict_by_age ON verdict (created_at_ms);

    CREATE TABLE callback (
      transaction_id TEXT NOT NULL PRIMARY KEY,
      url TEXT NOT NULL,
      attempts INTEGER NOT NULL DEFAULT 0,
      created_at_ms INTEGER NOT NULL,
      due_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX callback_by_due ON callback (due_at_ms);

    -- Events of administrators' commands, which run in another process; the server sends them on and empties this.
    CREATE TABLE outbox (
      id INTEGER PRIMARY KEY,
      client_id TEXT NOT NULL,
      event BLOB NOT NULL
    ) STRICT;

    -- Values that a running server stores for the commands.
    CREATE TABLE running (
      name TEXT NOT NULL PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT;
    """
}
