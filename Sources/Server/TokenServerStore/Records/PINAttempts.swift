// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

extension Database {
  package func countedRequest(of attempt: PINAttempt) throws -> [UInt8]? {
    try row(
      "SELECT request_hash FROM pin_attempt WHERE client_id = ? AND profile_id = ? AND key = ?",
      [attempt.clientID, attempt.profileID, attempt.key]
    ).map { try $0.bytes("request_hash") }
  }

  package func insert(_ attempt: PINAttempt, now: Timestamp) throws {
    try run(
      "INSERT INTO pin_attempt (client_id, profile_id, key, request_hash, created_at_ms) VALUES (?, ?, ?, ?, ?)",
      [attempt.clientID, attempt.profileID, attempt.key, attempt.requestHash, now])
    try run(
      "UPDATE knowledge SET failures = failures + 1 WHERE client_id = ? AND profile_id = ?",
      [attempt.clientID, attempt.profileID])
  }

  package func delete(_ attempt: PINAttempt) throws -> Bool {
    try run(
      "DELETE FROM pin_attempt WHERE client_id = ? AND profile_id = ? AND key = ?",
      [attempt.clientID, attempt.profileID, attempt.key]) == 1
  }

  package func clearAttempts(of profile: ProfileName) throws {
    try run("UPDATE knowledge SET failures = 0 WHERE client_id = ? AND profile_id = ?", [profile.clientID, profile.id])
    try run("DELETE FROM pin_attempt WHERE client_id = ? AND profile_id = ?", [profile.clientID, profile.id])
  }
}
