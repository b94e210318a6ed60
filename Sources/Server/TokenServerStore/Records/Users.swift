// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

extension Database {
  /// - Returns: false if the user exists already.
  package func insertUser(_ id: UserID, now: Timestamp) throws -> Bool {
    try run(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, ?) ON CONFLICT DO NOTHING"#, [id, now]) > 0
  }

  package func hasUser(_ id: UserID) throws -> Bool { try row(#"SELECT 1 FROM "user" WHERE id = ?"#, [id]) != nil }

  /// Deletes the user, with all enrollments and activation codes. Results of transactions stay until their retention
  /// ends. Idempotent.
  package func deleteUser(_ id: UserID, now: Timestamp) throws -> Effects {
    var effects = Effects()
    for profile in try profileNames(of: id) { effects.add(try deleteProfile(profile, now: now)) }
    try run("DELETE FROM activation_code WHERE user_id = ?", [id])
    try run("DELETE FROM hold WHERE user_id = ?", [id])
    try run(#"DELETE FROM "user" WHERE id = ?"#, [id])
    return effects
  }
}
