// SPDX-License-Identifier: Apache-2.0
/// The tables about PINs. They contain neither PINs nor secrets that a PIN protects.
enum PINSchema {
  static let statements = """
    -- The public half of a profile's knowledge key. `nonce`: what the assertion that activates it must carry, until one
    -- was tried. `activation`: keyed hash of the one that did. `failures`: attempts since the last right one.
    CREATE TABLE knowledge (
      client_id TEXT NOT NULL,
      profile_id TEXT NOT NULL,
      public_key BLOB NOT NULL,
      refresh_token_hash BLOB NOT NULL UNIQUE,
      state TEXT NOT NULL CHECK (state IN ('pending', 'active')),
      nonce TEXT,
      activation BLOB,
      failures INTEGER NOT NULL DEFAULT 0,
      proposed_at_ms INTEGER NOT NULL,
      PRIMARY KEY (client_id, profile_id),
      FOREIGN KEY (client_id, profile_id) REFERENCES profile (client_id, id)
    ) STRICT;
    CREATE INDEX pending_knowledge ON knowledge (proposed_at_ms) WHERE state = 'pending';

    -- Attempts that were counted and have no verdict yet. Judging one moves it to `verdict`.
    CREATE TABLE pin_attempt (
      client_id TEXT NOT NULL,
      profile_id TEXT NOT NULL,
      key TEXT NOT NULL,
      request_hash BLOB NOT NULL,
      created_at_ms INTEGER NOT NULL,
      PRIMARY KEY (client_id, profile_id, key)
    ) STRICT, WITHOUT ROWID;

    -- A PIN change. Of each profile at most one is open, and the last committed one stays: a token that lost power asks
    -- for it however much later.
    CREATE TABLE pin_change (
      id TEXT NOT NULL PRIMARY KEY,
      client_id TEXT NOT NULL,
      profile_id TEXT NOT NULL,
      public_key BLOB NOT NULL,
      refresh_token_hash BLOB NOT NULL,
      created_at_ms INTEGER NOT NULL,
      is_committed INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE UNIQUE INDEX pin_change_by_profile ON pin_change (client_id, profile_id, is_committed);

    -- `former_requests`: SHA-256 of each earlier wording of `request`, 32 bytes each, newest last.
    ALTER TABLE mobile_auth_transaction ADD COLUMN pin_attempts INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE mobile_auth_transaction ADD COLUMN former_requests BLOB NOT NULL DEFAULT x'';
    """
}
