// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
package import TokenServerCore

/// A callback that is still to be delivered to a portal.
package struct CallbackJob: Sendable, Equatable {
  package let transactionID: String
  package let url: String
  /// The number of failed deliveries.
  package let attempts: Int
  package let dueAt: Timestamp
  /// `HOST:PORT`; empty for a job stored by an earlier version.
  package let host: String
  /// The client id of the portal; empty for a job stored by an earlier version.
  package let portal: String

  init(_ row: any SQLRow) throws(CorruptRowError) {
    transactionID = try row.text("transaction_id")
    url = try row.text("url")
    attempts = try row.count("attempts")
    dueAt = try row.time("due_at_ms")
    host = try row.text("host")
    portal = try row.text("portal")
    guard CallbackURL.isAcceptable(url) else { throw CorruptRowError("url", "is not an acceptable callback URL") }
  }
}

extension Database {
  package func insertCallback(_ transactionID: String, url: String, of portal: String, dueAt: Timestamp) throws {
    let host = (try? CallbackURL(parsing: url))?.authority ?? ""
    try run(
      "INSERT INTO callback (transaction_id, url, created_at_ms, due_at_ms, host, portal) VALUES (?, ?, ?, ?, ?, ?)",
      [transactionID, url, dueAt, dueAt, host, portal])
  }

  /// The due callbacks, soonest first.
  /// - Parameters:
  ///   - hosts: hosts to leave out.
  ///   - portals: portals to leave out.
  ///   - isClaim: whether to lock the rows, in a transaction that writes, and leave out those that are locked.
  package func callbacks(
    dueBy now: Timestamp, without hosts: [String], portals: [String] = [], limit: Int, isClaim: Bool = false
  ) throws -> [CallbackJob] {
    // Mostly nothing is left out: then the database has no lists to parse.
    let isWhole = hosts.isEmpty && portals.isEmpty
    let others = "AND host NOT IN (\(dialect.textsOfList)) AND portal NOT IN (\(dialect.textsOfList))"
    let lists = isWhole ? [] : [hosts, portals].map { String(decoding: JSON.encode($0), as: UTF8.self) }
    return try rows(
      """
      SELECT * FROM callback WHERE due_at_ms <= ? \(isWhole ? "" : others)
      ORDER BY due_at_ms LIMIT ?
      \(isClaim ? dialect.skippingLocked : "")
      """, [now] + lists + [limit]
    ).map { row throws(CorruptRowError) in try CallbackJob(row) }
  }

  /// As `callbacks`, for one of several servers: the callbacks are due again at `until`, in case that this server ends
  /// before it has delivered them.
  package func claimCallbacks(
    dueBy now: Timestamp, until: Timestamp, without hosts: [String], portals: [String], limit: Int
  ) throws -> [CallbackJob] {
    let jobs = try callbacks(dueBy: now, without: hosts, portals: portals, limit: limit, isClaim: true)
    for job in jobs {
      try run("UPDATE callback SET due_at_ms = ? WHERE transaction_id = ?", [until, job.transactionID])
    }
    return jobs
  }

  /// Makes claimed callbacks due as they were.
  package func returnCallbacks(_ jobs: [CallbackJob], claimedUntil until: Timestamp) throws {
    for job in jobs {
      try run(
        "UPDATE callback SET due_at_ms = ? WHERE transaction_id = ? AND due_at_ms = ?",
        [job.dueAt, job.transactionID, until])
    }
  }

  package func nextCallback(after now: Timestamp) throws -> Timestamp? {
    try row(
      "SELECT CAST(MIN(due_at_ms) AS BIGINT) AS next FROM callback WHERE due_at_ms > ? AND due_at_ms <= ?",
      [now, JSON.largestNumber]
    ).flatMap { try? $0.optionalTime("next") }
  }

  package func deleteCallback(_ transactionID: String) throws {
    try run("DELETE FROM callback WHERE transaction_id = ?", [transactionID])
  }

  package func postponeCallback(_ transactionID: String, attempts: Int, dueAt: Timestamp) throws {
    try run(
      "UPDATE callback SET attempts = ?, due_at_ms = ? WHERE transaction_id = ?", [attempts, dueAt, transactionID])
  }
}
