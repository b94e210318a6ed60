// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

extension Database {
  /// - Returns: false if the user exists already.
  package func insertUser(_ id: UserID, now: Timestamp) throws -> Bool {
    try run(#"INSERT INTO "user" (id, created_at_ms) VALUES (?, ?) ON CONFLICT DO NOTHING"#, [id, now]) > 0
  }

  package func hasUser(_ id: UserID) throws -> Bool { try row(#"SELECT 1 FROM "user" WHERE id = ?"#, [id]) != nil }

  /// The readable users, ordered by id, each with the number of devices on which the user is activated.
  package func users() throws -> [(id: UserID, createdAt: Timestamp, devices: Int)] {
    try rows(
      """
      SELECT id, created_at_ms, (
        SELECT COUNT(*) FROM profile WHERE profile.user_id = "user".id AND profile.deleted_at_ms IS NULL
      ) AS devices FROM "user" ORDER BY id
      """
    ).compactMap { row in try? (row.userID("id"), row.time("created_at_ms"), row.count("devices")) }
  }

  /// Deletes the user, with all enrollments and activation codes. Results of transactions stay until their retention
  /// ends. Idempotent.
  package func deleteUser(_ id: UserID, now: Timestamp) throws -> Effects {
    var effects = Effects()
    for profile in try profileNames(of: id) { effects.add(try deleteProfile(profile, now: now)) }
    try deleteActivationCodes(of: id)
    try run("DELETE FROM hold WHERE user_id = ?", [id])
    try run(#"DELETE FROM "user" WHERE id = ?"#, [id])
    return effects
  }
}
