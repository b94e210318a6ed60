// SPDX-License-Identifier: Apache-2.0

extension Database {
  /// - Returns: false if the user exists already.
  func insertUser(_ id: String, nowMs: Int64) throws -> Bool {
    try run("INSERT INTO user (id, created_at_ms) VALUES (?, ?) ON CONFLICT DO NOTHING", [id, nowMs]) > 0
  }

  func hasUser(_ id: String) throws -> Bool { try row("SELECT 1 FROM user WHERE id = ?", [id]) != nil }
}
