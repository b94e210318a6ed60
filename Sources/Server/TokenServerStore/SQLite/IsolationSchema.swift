// SPDX-License-Identifier: Apache-2.0
/// Tables that limit the effect of one invalid row, one slow portal or one attacked user.
enum IsolationSchema {
  static let statements = """
    -- Rows that could not be read, out of the way of the others. `columns`: SQL literals.
    CREATE TABLE set_aside (
      id INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL,
      columns TEXT NOT NULL,
      why TEXT NOT NULL,
      at_ms INTEGER NOT NULL
    ) STRICT;

    -- Users who said "not me" lately: portals are asked to wait until then.
    CREATE TABLE hold (
      user_id TEXT NOT NULL PRIMARY KEY,
      until_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- Where a callback goes, `HOST:PORT`: how many are under way is counted by it.
    ALTER TABLE callback ADD COLUMN host TEXT NOT NULL DEFAULT '';

    -- What the receipt of a settled answer says, signed by the server's key of the enrollment.
    ALTER TABLE mobile_auth_transaction ADD COLUMN sealed_receipt TEXT;

    -- Keys of an enrollment that is gone: what tells its device so is signed with them.
    ALTER TABLE profile ADD COLUMN former_certificate BLOB;
    ALTER TABLE profile ADD COLUMN former_server_key TEXT;
    """

  static let portals = """
    -- The client id of the portal: how many of its callbacks are under way is counted by it.
    ALTER TABLE mobile_auth_transaction ADD COLUMN portal TEXT NOT NULL DEFAULT '';
    ALTER TABLE callback ADD COLUMN portal TEXT NOT NULL DEFAULT '';
    """
}
