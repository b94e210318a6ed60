// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
package import TokenServerCore

extension Database {
  /// Ends transactions that expired without an answer.
  package func expireTransactions(now: Timestamp) throws -> Effects {
    var effects = Effects()
    let due = try rows(
      """
      SELECT rowid AS row_number, * FROM mobile_auth_transaction WHERE state = 'open' AND expires_at_ms <= ? LIMIT 500
      \(dialect.skippingLocked)
      """, [now])
    let table = "mobile_auth_transaction"
    for transaction in try readable(due, of: table, now: now, into: &effects, Transaction.init) {
      try end(transaction, .expired, now: now).map { effects.add($0) }
    }
    return effects
  }

  /// When the next open transaction expires.
  package func nextExpiry() throws -> Timestamp? {
    // SQLite sorts texts and blobs after numbers; the bound excludes these and all times after the year 9999.
    try row(
      """
      SELECT CAST(CASE WHEN MIN(expires_at_ms) < 0 THEN 0 ELSE MIN(expires_at_ms) END AS BIGINT) AS next
      FROM mobile_auth_transaction
      WHERE state = 'open' AND expires_at_ms <= ?
      """, [JSON.largestNumber]
    ).flatMap { try? $0.optionalTime("next") }
  }

  /// When the next transaction or the next pending profile expires.
  package func nextDue() throws -> Timestamp? { try [nextExpiry(), nextPendingExpiry()].compactMap { $0 }.min() }

  /// Deletes results, callbacks and attempts after the retention period.
  package func forget(endedBefore: Timestamp, now: Timestamp) throws {
    try run("DELETE FROM mobile_auth_transaction WHERE ended_at_ms < ?", [endedBefore])
    try run("DELETE FROM callback WHERE created_at_ms < ?", [endedBefore])
    try run("DELETE FROM verdict WHERE created_at_ms < ?", [endedBefore])
    try run("DELETE FROM pin_attempt WHERE created_at_ms < ?", [endedBefore])
    try run(
      "DELETE FROM pin_change WHERE created_at_ms <= ? AND is_committed = 0", [now - StoredPINChange.lifetime])
    try run("DELETE FROM authenticator_attempt WHERE created_at_ms < ?", [endedBefore])
    try run(
      "DELETE FROM authenticator WHERE state = 'pending' AND proposed_at_ms <= ?",
      [now - AuthenticatorRecord.pendingFor])
    try run("DELETE FROM access_token WHERE expires_at_ms < ?", [now])
    try run("DELETE FROM activation_code WHERE expires_at_ms < ?", [now])
    try run("DELETE FROM hold WHERE until_ms < ?", [now])
  }
}
