// SPDX-License-Identifier: Apache-2.0
/// The tables about authenticators other than the PIN.
enum AuthenticatorSchema {
  static let statements = """
    -- The public half of the authenticator's own key. `registration_id`: the Idempotency-Key of its registration.
    -- `registration_data`: what the registration script returned. `failures`: attempts since the last right one.
    CREATE TABLE authenticator (
      client_id TEXT NOT NULL,
      profile_id TEXT NOT NULL,
      id TEXT NOT NULL,
      kind TEXT NOT NULL CHECK (kind IN ('biometric', 'custom')),
      registration_id TEXT NOT NULL,
      public_key BLOB NOT NULL,
      refresh_token_hash BLOB NOT NULL UNIQUE,
      state TEXT NOT NULL CHECK (state IN ('pending', 'active')),
      registration_data TEXT,
      failures INTEGER NOT NULL DEFAULT 0,
      proposed_at_ms INTEGER NOT NULL,
      PRIMARY KEY (client_id, profile_id, id),
      FOREIGN KEY (client_id, profile_id) REFERENCES profile (client_id, id)
    ) STRICT;

    -- Attempts that were counted and have no verdict yet. `attempt_id`: what the script gets, also a second time.
    CREATE TABLE authenticator_attempt (
      client_id TEXT NOT NULL,
      profile_id TEXT NOT NULL,
      authenticator_id TEXT NOT NULL,
      key TEXT NOT NULL,
      request_hash BLOB NOT NULL,
      attempt_id TEXT NOT NULL,
      registration_id TEXT NOT NULL,
      created_at_ms INTEGER NOT NULL,
      PRIMARY KEY (client_id, profile_id, authenticator_id, key)
    ) STRICT, WITHOUT ROWID;

    -- The authenticator that a request needs, whether the PIN may replace it, and what was used.
    ALTER TABLE mobile_auth_transaction ADD COLUMN authenticator TEXT;
    ALTER TABLE mobile_auth_transaction ADD COLUMN has_fallback INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE mobile_auth_transaction ADD COLUMN method_used TEXT;
    ALTER TABLE mobile_auth_transaction ADD COLUMN authenticator_attempts INTEGER NOT NULL DEFAULT 0;
    """
}
