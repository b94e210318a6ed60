// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import TokenServerCore

extension AuthenticatorRecord {
  init(_ row: any SQLRow) throws {
    guard let kind = ServerConfiguration.Authenticator.Kind(rawValue: try row.text("kind")) else {
      throw CorruptRowError("kind", "is unknown")
    }
    self.init(
      name: AuthenticatorName(
        profile: ProfileName(clientID: try row.clientID("client_id"), id: try row.profileID("profile_id")),
        id: try row.text("id")),
      kind: kind, registrationID: try row.text("registration_id"),
      publicKey: try Ed25519.PublicKey(bytes: row.bytes("public_key")),
      isActive: try row.text("state") == "active", registrationData: try row.optionalText("registration_data"),
      failures: try row.count("failures"), proposedAt: try row.time("proposed_at_ms"))
  }
}

extension AuthenticatorName {
  fileprivate var parameters: [any SQLParameter] { [profile.clientID, profile.id, id] }
}

extension Database {
  package func authenticator(_ name: AuthenticatorName) throws -> AuthenticatorRecord? {
    try row("SELECT * FROM authenticator WHERE client_id = ? AND profile_id = ? AND id = ?", name.parameters)
      .map(AuthenticatorRecord.init)
  }

  package func propose(_ authenticator: NewAuthenticator, now: Timestamp) throws -> Bool {
    try run(
      """
      INSERT INTO authenticator (client_id, profile_id, id, kind, registration_id, public_key, refresh_token_hash,
        state, registration_data, proposed_at_ms)
      VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)
      ON CONFLICT (client_id, profile_id, id) DO UPDATE SET kind = excluded.kind,
        registration_id = excluded.registration_id, public_key = excluded.public_key,
        refresh_token_hash = excluded.refresh_token_hash, registration_data = excluded.registration_data,
        failures = 0, proposed_at_ms = excluded.proposed_at_ms
      WHERE authenticator.state = 'pending'
      """,
      authenticator.name.parameters + [
        authenticator.kind.rawValue, authenticator.registrationID, authenticator.key.publicKey.bytes,
        authenticator.key.refreshTokenHash, authenticator.registrationData, now,
      ]) == 1
  }

  package func activate(_ name: AuthenticatorName, registrationID: String) throws -> Bool {
    try run(
      """
      UPDATE authenticator SET state = 'active'
      WHERE client_id = ? AND profile_id = ? AND id = ? AND registration_id = ?
      """, name.parameters + [registrationID]) == 1
  }

  package func removeAuthenticator(_ name: AuthenticatorName) throws -> Bool {
    try run(
      "DELETE FROM authenticator_attempt WHERE client_id = ? AND profile_id = ? AND authenticator_id = ?",
      name.parameters)
    return try run("DELETE FROM authenticator WHERE client_id = ? AND profile_id = ? AND id = ?", name.parameters) == 1
  }

  package func setFailures(_ failures: Int, of name: AuthenticatorName) throws {
    try run(
      "UPDATE authenticator SET failures = ? WHERE client_id = ? AND profile_id = ? AND id = ?",
      [failures] + name.parameters)
  }

  package func refusedRegistrations(of name: AuthenticatorName, since: Timestamp) throws -> Int {
    let keys = AuthenticatorRecord.registrationKeys(of: name)
    return try row(
      """
      SELECT COUNT(*) AS count FROM verdict
      WHERE client_id = ? AND substr(idempotency_key, 1, length(?)) = ? AND status >= 400 AND created_at_ms > ?
      """, [name.profile.clientID, keys, keys, since]
    ).map { try $0.count("count") } ?? 0
  }

  package func countedAttempt(_ attempt: AuthenticatorAttempt) throws -> CountedAuthenticatorAttempt? {
    try row(
      """
      SELECT * FROM authenticator_attempt
      WHERE client_id = ? AND profile_id = ? AND authenticator_id = ? AND key = ?
      """, attempt.name.parameters + [attempt.key]
    ).map { row in
      CountedAuthenticatorAttempt(
        requestHash: try row.bytes("request_hash"), attemptID: try row.text("attempt_id"),
        registrationID: try row.text("registration_id"))
    }
  }

  package func insert(
    _ attempt: AuthenticatorAttempt, _ counted: CountedAuthenticatorAttempt, now: Timestamp
  ) throws {
    try run(
      """
      INSERT INTO authenticator_attempt (client_id, profile_id, authenticator_id, key, request_hash, attempt_id,
        registration_id, created_at_ms)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """,
      attempt.name.parameters + [
        attempt.key, counted.requestHash, counted.attemptID, counted.registrationID, now,
      ])
    // Registrations whose script cannot be run leave their attempts, for a repetition.
    try run(
      """
      DELETE FROM authenticator_attempt
      WHERE client_id = ? AND profile_id = ? AND authenticator_id = ? AND key <> ? AND key NOT IN (
        SELECT key FROM authenticator_attempt WHERE client_id = ? AND profile_id = ? AND authenticator_id = ?
        ORDER BY created_at_ms DESC LIMIT ?)
      """, attempt.name.parameters + [attempt.key] + attempt.name.parameters + [AuthenticatorAttempt.mostOpen])
    try run(
      """
      UPDATE authenticator SET failures = failures + 1
      WHERE client_id = ? AND profile_id = ? AND id = ? AND state = 'active'
      """, attempt.name.parameters)
  }

  package func delete(_ attempt: AuthenticatorAttempt) throws -> Bool {
    try run(
      """
      DELETE FROM authenticator_attempt WHERE client_id = ? AND profile_id = ? AND authenticator_id = ? AND key = ?
      """, attempt.name.parameters + [attempt.key]) == 1
  }
}
