// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import ReferenceProtocol
package import TokenServerCore

/// A PIN change that was started with the correct PIN.
package struct StoredPINChange: Sendable {
  /// The maximum time from start to commit.
  package static let lifetime = Duration.seconds(600)

  package let id: String
  /// The public key of the new PIN's verifier.
  package let publicKey: Ed25519.PublicKey
  package let createdAt: Timestamp
  package let isCommitted: Bool

  init(_ row: any SQLRow) throws {
    id = try row.text("id")
    publicKey = try Ed25519.PublicKey(bytes: row.bytes("public_key"))
    createdAt = try row.time("created_at_ms")
    isCommitted = try row.flag("is_committed")
  }

  package func state(at now: Timestamp) -> PINChangeStatus.State {
    if isCommitted { return .committed }
    return now < createdAt + Self.lifetime ? .pending : .void
  }
}

extension Database {
  package func pinChange(_ id: String, of profile: Profile) throws -> StoredPINChange? {
    try row(
      "SELECT * FROM pin_change WHERE id = ? AND client_id = ? AND profile_id = ?", [id, profile.clientID, profile.id]
    ).map(StoredPINChange.init)
  }

  /// Replaces a change that was not committed.
  package func insertPINChange(_ id: String, _ knowledge: NewKnowledgeKey, now: Timestamp) throws {
    try run(
      "DELETE FROM pin_change WHERE client_id = ? AND profile_id = ? AND is_committed = 0",
      [knowledge.clientID, knowledge.profileID])
    try run(
      """
      INSERT INTO pin_change (id, client_id, profile_id, public_key, refresh_token_hash, created_at_ms)
      VALUES (?, ?, ?, ?, ?, ?)
      """,
      [
        id, knowledge.clientID, knowledge.profileID, knowledge.publicKey.bytes,
        knowledge.refreshTokenHash, now,
      ])
  }

  /// Switches to the new verifier; the former knowledge key is no longer accepted.
  /// - Returns: false if the change, or the profile, is gone.
  package func commitPINChange(_ id: String, of profile: Profile) throws -> Bool {
    let changed = try run(
      """
      UPDATE knowledge SET public_key = change.public_key, refresh_token_hash = change.refresh_token_hash
      FROM pin_change AS change
      WHERE knowledge.client_id = ? AND knowledge.profile_id = ? AND change.id = ? AND change.is_committed = 0
        AND change.client_id = knowledge.client_id AND change.profile_id = knowledge.profile_id
      """, [profile.clientID, profile.id, id])
    guard changed == 1 else { return false }
    try run(
      "DELETE FROM pin_change WHERE client_id = ? AND profile_id = ? AND is_committed = 1",
      [profile.clientID, profile.id])
    try run("UPDATE pin_change SET is_committed = 1 WHERE id = ?", [id])
    return true
  }

  package func deletePINChange(_ id: String) throws { try run("DELETE FROM pin_change WHERE id = ?", [id]) }
}
