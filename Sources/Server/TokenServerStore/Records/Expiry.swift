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
      \(transaction.lockingRows)
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

  /// Deletes results, callbacks and attempts after the retention period, and what has expired: a batch of each table.
  /// - Returns: whether there may be more.
  package func forget(endedBefore: Timestamp, now: Timestamp) throws -> Bool {
    let outdated: [(table: String, key: String, condition: String, time: Timestamp)] = [
      ("mobile_auth_transaction", "id", "ended_at_ms < ?", endedBefore),
      ("callback", "transaction_id", "created_at_ms < ?", endedBefore),
      ("verdict", "client_id, idempotency_key", "created_at_ms < ?", endedBefore),
      ("pin_attempt", "client_id, profile_id, key", "created_at_ms < ?", endedBefore),
      ("pin_change", "id", "created_at_ms <= ? AND is_committed = 0", now - StoredPINChange.lifetime),
      (
        "authenticator_attempt", "client_id, profile_id, authenticator_id, key", "created_at_ms < ?", endedBefore
      ),
      (
        "authenticator", "client_id, profile_id, id", "state = 'pending' AND proposed_at_ms <= ?",
        now - AuthenticatorRecord.pendingFor
      ),
      ("access_token", "hash", "expires_at_ms < ?", now),
      ("activation_code", "hash", "expires_at_ms < ?", now),
      ("hold", "user_id", "until_ms < ?", now),
    ]
    var isMore = false
    for (table, key, condition, time) in outdated
    where try deleteBatch(of: table, key, where: condition, [time]) { isMore = true }
    return isMore
  }
}
