// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

/// Holds on users' requests after "not me": an attacker who knows the user's password could otherwise repeat requests
/// until the user approves one by mistake. Activations are never held.
extension Database {
  /// Starts a hold; an existing hold that ends later is kept.
  package func hold(_ userID: UserID, until: Timestamp) throws {
    try run(
      """
      INSERT INTO hold (user_id, until_ms) VALUES (?, ?)
      ON CONFLICT (user_id) DO UPDATE SET until_ms =
        CASE WHEN hold.until_ms > excluded.until_ms THEN hold.until_ms ELSE excluded.until_ms END
      """, [userID, until])
  }

  /// - Returns: when the hold ends; nil if there is none.
  package func holdEnd(of userID: UserID, now: Timestamp) throws -> Timestamp? {
    try row("SELECT until_ms FROM hold WHERE user_id = ? AND until_ms > ?", [userID, now])
      .flatMap { try? $0.time("until_ms") }
  }

  /// Current holds; the next to end comes first.
  package func holds(now: Timestamp) throws -> [(userID: UserID, until: Timestamp)] {
    try rows("SELECT * FROM hold WHERE until_ms > ? ORDER BY until_ms, user_id", [now]).compactMap { row in
      try? (row.userID("user_id"), row.time("until_ms"))
    }
  }

  /// - Returns: whether there was a hold.
  package func endHold(of userID: UserID, now: Timestamp) throws -> Bool {
    try run("DELETE FROM hold WHERE user_id = ? AND until_ms > ?", [userID, now]) > 0
  }
}
