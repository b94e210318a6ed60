// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import SQLite
import Secrets

/// The schema. A new format is a new step at the end; released steps are never changed.
///
/// As long as a release is on trial, the vault has the format of the release before (`VaultFormats`). Code that writes
/// what a format has added asks for `formatVersion()` in the same transaction, and writes what that format has.
///
/// Names of servers, accounts and profiles are stored in plaintext; secrets are encrypted (columns `box`).
enum Schema {
  static func steps(_ keys: VaultKeys, _ upgrade: AccountUpgrade? = nil) -> [(borrowing Connection) throws -> Void] {
    [
      { connection in try makeFormat1(connection, keys) }, makeFormat2, makeMessages, makeOneTimePasswords,
      makeAnswerBodies, makeServerTimes,
      { connection in try makeKeptAudit(connection, keys) },
      { connection in try RecordMigration(keys: keys, upgrade: upgrade).run(on: connection) },
    ]
  }

  /// The newest format.
  static let newestFormat = 8

  private static func makeFormat1(_ connection: borrowing Connection, _ keys: VaultKeys) throws {
    try connection.execute(
      """
      CREATE TABLE canary (id INTEGER PRIMARY KEY CHECK (id = 1), box BLOB NOT NULL) STRICT;
      CREATE TABLE servers (
        id TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL, url TEXT NOT NULL, box BLOB NOT NULL) STRICT;
      CREATE TABLE accounts (
        id TEXT PRIMARY KEY NOT NULL, server TEXT NOT NULL REFERENCES servers ON DELETE CASCADE,
        profile TEXT NOT NULL, stage TEXT NOT NULL, box BLOB NOT NULL) STRICT;
      CREATE INDEX accounts_of_server ON accounts (server);
      CREATE TABLE intents (
        txn TEXT PRIMARY KEY NOT NULL, server TEXT NOT NULL,
        account TEXT NOT NULL REFERENCES accounts ON DELETE CASCADE,
        idempotency_key TEXT NOT NULL, decision TEXT NOT NULL, mark BLOB NOT NULL) STRICT;
      CREATE INDEX intents_of_account ON intents (account);
      CREATE TABLE audit (
        sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, account TEXT, txn TEXT, detail TEXT NOT NULL,
        milliseconds INTEGER NOT NULL, mark BLOB NOT NULL) STRICT;
      CREATE TABLE audit_head (
        id INTEGER PRIMARY KEY CHECK (id = 1), dropped INTEGER NOT NULL, dropped_mark BLOB NOT NULL,
        last INTEGER NOT NULL, last_mark BLOB NOT NULL, mark BLOB NOT NULL) STRICT;
      CREATE TABLE clock (
        id INTEGER PRIMARY KEY CHECK (id = 1), seconds INTEGER NOT NULL, mark BLOB NOT NULL) STRICT;
      """)
    try connection.run(
      "INSERT INTO canary VALUES (1, ?)", keys.seal(SecretBytes(copying: canary), at: CanonicalBytes("canary")))
    try AuditHead.empty.write(to: connection, keys)
  }

  /// PINs that the token verifies.
  private static func makeFormat2(_ connection: borrowing Connection) throws {
    try connection.execute(
      """
      CREATE TABLE pins (
        account TEXT PRIMARY KEY NOT NULL REFERENCES accounts ON DELETE CASCADE,
        max_failures INTEGER NOT NULL, failures INTEGER NOT NULL, box BLOB NOT NULL, mark BLOB NOT NULL) STRICT;
      """)
  }

  /// Push messages delivered to this token.
  private static func makeMessages(_ connection: borrowing Connection) throws {
    try connection.execute(
      """
      CREATE TABLE messages (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT, txn TEXT NOT NULL UNIQUE, reference TEXT NOT NULL UNIQUE,
        account TEXT NOT NULL REFERENCES accounts ON DELETE CASCADE,
        received INTEGER NOT NULL, state TEXT NOT NULL, answer_key TEXT, box BLOB NOT NULL) STRICT;
      CREATE INDEX messages_of_account ON messages (account);
      """)
  }

  private static func makeOneTimePasswords(_ connection: borrowing Connection) throws {
    try connection.execute(
      """
      CREATE TABLE one_time_passwords (
        account TEXT PRIMARY KEY NOT NULL REFERENCES accounts ON DELETE CASCADE, algorithm TEXT NOT NULL,
        digits INTEGER NOT NULL, period INTEGER NOT NULL, counter INTEGER NOT NULL, box BLOB NOT NULL,
        mark BLOB NOT NULL) STRICT;
      """)
  }

  /// Encrypted bytes of answers that are sent again after a restart.
  private static func makeAnswerBodies(_ connection: borrowing Connection) throws {
    try connection.execute("ALTER TABLE intents ADD COLUMN body BLOB;")
  }

  /// Replaces the single known time by one per server, so that a server's time does not affect the others.
  private static func makeServerTimes(_ connection: borrowing Connection) throws {
    try connection.execute(
      """
      DROP TABLE clock;
      CREATE TABLE server_times (
        server TEXT PRIMARY KEY NOT NULL REFERENCES servers ON DELETE CASCADE, seconds INTEGER NOT NULL,
        mark BLOB NOT NULL) STRICT;
      """)
  }

  /// Decision entries of the audit chain, which are kept longer than others.
  private static func makeKeptAudit(_ connection: borrowing Connection, _ keys: VaultKeys) throws {
    try connection.execute(
      """
      CREATE TABLE audit_kept (
        sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, account TEXT, txn TEXT, detail TEXT NOT NULL,
        milliseconds INTEGER NOT NULL, mark BLOB NOT NULL) STRICT;
      CREATE TABLE audit_kept_head (
        id INTEGER PRIMARY KEY CHECK (id = 1), dropped INTEGER NOT NULL, dropped_mark BLOB NOT NULL,
        last INTEGER NOT NULL, last_mark BLOB NOT NULL, mark BLOB NOT NULL) STRICT;
      """)
    try AuditHead.empty.write(.retained, to: connection, keys)
  }

  /// Checks that the device secret is the one that the vault was created with.
  static func checkCanary(_ connection: borrowing Connection, _ keys: VaultKeys) throws {
    let ciphertexts = try connection.rows("SELECT box FROM canary") { try $0.blob(0) }
    guard let ciphertext = ciphertexts.first, let opened = try? keys.open(ciphertext, at: CanonicalBytes("canary")),
      SecretBytes.constantTimeEqual(opened, SecretBytes(copying: canary))
    else { throw StateStoreError.corrupt(.canary) }
  }

  private static let canary = Array("approval-token vault".utf8)
}
