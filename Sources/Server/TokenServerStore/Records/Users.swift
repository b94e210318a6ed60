// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

extension Database {
  /// - Returns: false if the user exists already.
  package func insertUser(_ id: UserID, now: Timestamp) throws -> Bool {
    try run("INSERT INTO user (id, created_at_ms) VALUES (?, ?) ON CONFLICT DO NOTHING", [id, now]) > 0
  }

  package func hasUser(_ id: UserID) throws -> Bool { try row("SELECT 1 FROM user WHERE id = ?", [id]) != nil }
}
