// SPDX-License-Identifier: Apache-2.0
import GRDB

/// The tables. A released migration is never changed; a later version adds one. The PIN tables are in `PINSchema`.
enum Schema {
  static var migrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1: push") { database in
      try database.execute(sql: accounts)
      try database.execute(sql: access)
      try database.execute(sql: transactions)
    }
    migrator.registerMigration("2: pin") { try $0.execute(sql: PINSchema.statements) }
    migrator.registerMigration("3: hostility") { try $0.execute(sql: IsolationSchema.statements) }
    migrator.registerMigration("4: introspection") { try $0.execute(sql: IntrospectionSchema.statements) }
    migrator.registerMigration("5: authenticators") { try $0.execute(sql: AuthenticatorSchema.statements) }
    migrator.registerMigration("6: callbacks by portal") { try $0.execute(sql: IsolationSchema.portals) }
    migrator.registerMigration("7: board serial") {
      // NULL for devices of earlier versions, and for boards without one.
      try $0.execute(sql: "ALTER TABLE device ADD COLUMN board_serial TEXT;")
    }
    migrator.registerMigration("8: delivery reports") {
      // The first report of the device that it has the request; NULL before it.
      try $0.execute(sql: "ALTER TABLE mobile_auth_transaction ADD COLUMN delivered_at_ms INTEGER;")
    }
    migrator.registerMigration("9: former pepper") { database in
      for statement in FormerPepperSchema.statements(number: "INTEGER") { try database.execute(sql: statement) }
    }
    return migrator
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
