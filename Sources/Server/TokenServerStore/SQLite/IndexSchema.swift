// SPDX-License-Identifier: Apache-2.0
/// Indexes for what devices and clients without a device can request: no such statement reads a whole table.
enum IndexSchema {
  /// For both engines.
  static let statements = [
    "CREATE INDEX access_token_by_profile ON access_token (client_id, profile_id)",
    // The devices of one fleet token, and those of them that were deleted since some time.
    "CREATE INDEX device_by_deletion ON device (credential, deleted_at_ms)",
    // Whether a server key is still in use; the first one also for the foreign key.
    "CREATE INDEX profile_by_server_key ON profile (server_key)",
    "CREATE INDEX profile_by_former_server_key ON profile (former_server_key)",
  ]

  /// SQLite uses an index of a part of the rows only for a query with the very same condition.
  static let sharedServerKey = [
    "DROP INDEX shared_server_key",
    "CREATE UNIQUE INDEX shared_server_key ON server_key (is_shared) WHERE is_shared = 1",
  ]
}
