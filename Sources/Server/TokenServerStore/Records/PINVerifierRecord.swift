// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
package import TokenServerCore

extension PINVerifierRecord {
  /// - Returns: nil for a profile without a verifier.
  init?(_ row: any SQLRow) throws {
    guard let key = try row.optionalBytes("knowledge_key") else { return nil }
    try self.init(
      publicKey: Ed25519.PublicKey(bytes: key), isActive: row.text("knowledge_state") == "active",
      nonce: row.optionalText("knowledge_nonce"), activation: row.optionalBytes("knowledge_activation"),
      failures: row.count("knowledge_failures"), proposedAt: row.time("knowledge_proposed_at_ms"))
  }
}

extension Database {
  /// Replaces an earlier pending verifier, so that only the last of several refresh tokens for one profile can become
  /// active.
  /// - Returns: false if there is an active verifier, which is kept.
  package func propose(_ knowledge: NewKnowledgeKey, nonce: String, now: Timestamp) throws -> Bool {
    try run(
      """
      INSERT INTO knowledge (client_id, profile_id, public_key, refresh_token_hash, state, nonce, proposed_at_ms)
      VALUES (?, ?, ?, ?, 'pending', ?, ?)
      ON CONFLICT (client_id, profile_id) DO UPDATE SET public_key = excluded.public_key,
        refresh_token_hash = excluded.refresh_token_hash, nonce = excluded.nonce,
        proposed_at_ms = excluded.proposed_at_ms
      WHERE knowledge.state = 'pending'
      """,
      [
        knowledge.clientID, knowledge.profileID, knowledge.publicKey.bytes, knowledge.refreshTokenHash,
        nonce, now,
      ]) == 1
  }

  /// - Parameter activation: the keyed hash of the assertion.
  /// - Returns: false if the verifier proposed with this nonce is gone.
  package func activateKnowledge(of profile: Profile, nonce: String, activation: [UInt8]) throws -> Bool {
    try run(
      """
      UPDATE knowledge SET state = 'active', nonce = NULL, activation = ?
      WHERE client_id = ? AND profile_id = ? AND state = 'pending' AND nonce = ?
      """, [activation, profile.clientID, profile.id, nonce]) == 1
  }

  /// Invalidates a pending verifier after one attempt, so that it cannot be used to guess the PIN.
  package func spend(_ nonce: String, of profile: Profile) throws {
    try run(
      "UPDATE knowledge SET nonce = NULL WHERE client_id = ? AND profile_id = ? AND nonce = ?",
      [profile.clientID, profile.id, nonce])
  }

  /// Deletes the PIN and the other authenticators of a profile.
  package func forgetKnowledge(of profile: ProfileName) throws {
    for table in ["knowledge", "pin_attempt", "pin_change", "authenticator", "authenticator_attempt"] {
      try run("DELETE FROM \(table) WHERE client_id = ? AND profile_id = ?", [profile.clientID, profile.id])
    }
  }

  /// Deletes profiles whose PIN was not chosen in time.
  package func expireProfiles(now: Timestamp) throws -> Effects {
    var effects = Effects()
    let due = try rows(
      """
      SELECT rowid AS row_number, client_id, profile_id FROM knowledge
      WHERE state = 'pending' AND proposed_at_ms <= ? LIMIT 500
      \(transaction.lockingRows)
      """, [now - PINVerifierRecord.pendingFor])
    let profiles = try readable(due, of: "knowledge", now: now, into: &effects) { row in
      let name = ProfileName(clientID: try row.clientID("client_id"), id: try row.profileID("profile_id"))
      guard try self.row("SELECT 1 FROM profile WHERE client_id = ? AND id = ?", [name.clientID, name.id]) != nil else {
        throw CorruptRowError("profile_id", "names no profile")
      }
      return name
    }
    for profile in profiles { effects.add(try deleteProfile(profile, now: now)) }
    return effects
  }

  /// When the next pending profile expires.
  package func nextPendingExpiry() throws -> Timestamp? {
    try row(
      """
      SELECT CAST(CASE WHEN MIN(proposed_at_ms) < 0 THEN 0 ELSE MIN(proposed_at_ms) END AS BIGINT) AS next
      FROM knowledge
      WHERE state = 'pending' AND proposed_at_ms <= ?
      """, [JSON.largestNumber]
    ).flatMap { try? $0.optionalTime("next") }.map { $0 + PINVerifierRecord.pendingFor }
  }
}
