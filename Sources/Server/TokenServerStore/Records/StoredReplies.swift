// SPDX-License-Identifier: Apache-2.0
package import TokenServerCore

extension Database {
  package func storedReply(_ key: String, of clientID: ClientID) throws -> StoredReply? {
    try row("SELECT * FROM verdict WHERE client_id = ? AND idempotency_key = ?", [clientID, key]).map { row in
      let status = try row.count("status")
      guard (200...599).contains(status) else { throw CorruptRowError("status", "is out of range") }
      return StoredReply(requestHash: try row.bytes("request_hash"), status: status, body: try row.bytes("body"))
    }
  }

  package func replaceReply(_ key: String, of clientID: ClientID, to requestHash: [UInt8], body: [UInt8]) throws {
    try run(
      "UPDATE verdict SET body = ? WHERE client_id = ? AND idempotency_key = ? AND request_hash = ?",
      [body, clientID, key, requestHash])
  }

  package func insert(_ reply: StoredReply, key: String, clientID: ClientID, now: Timestamp) throws {
    try run(
      """
      INSERT INTO verdict (client_id, idempotency_key, request_hash, status, body, created_at_ms)
      VALUES (?, ?, ?, ?, ?, ?)
      """, [clientID, key, reply.requestHash, reply.status, reply.body, now])
  }
}
