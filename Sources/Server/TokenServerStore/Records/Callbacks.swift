// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
package import TokenServerCore

/// A callback that is still to be delivered to a portal.
package struct CallbackJob: Sendable, Equatable {
  package let transactionID: String
  package let url: String
  /// The number of failed deliveries.
  package let attempts: Int
  /// When it is due; of a claimed one, when it was due before.
  package let dueAt: Timestamp
  /// The time in its row: a claim of another server changes it.
  let rowDueAt: Timestamp
  /// `HOST:PORT`; empty for a job stored by an earlier version.
  package let host: String
  /// The client id of the portal; empty for a job stored by an earlier version.
  package let portal: String

  /// - Parameter due: the column with the time at which it is due.
  init(_ row: any SQLRow, due: String = "due_at_ms") throws(CorruptRowError) {
    transactionID = try row.text("transaction_id")
    url = try row.text("url")
    attempts = try row.count("attempts")
    dueAt = try row.time(due)
    rowDueAt = try row.time("due_at_ms")
    host = try row.text("host")
    portal = try row.text("portal")
    guard CallbackURL.isAcceptable(url) else { throw CorruptRowError("url", "is not an acceptable callback URL") }
  }
}

extension Database {
  /// A transaction has one callback. A damaged row that is in its place must not keep its profile from being deleted,
  /// as after the last wrong PIN.
  package func insertCallback(_ transactionID: String, url: String, of portal: String, dueAt: Timestamp) throws {
    let host = (try? CallbackURL(parsing: url))?.authority ?? ""
    try run(
      """
      INSERT INTO callback (transaction_id, url, created_at_ms, due_at_ms, host, portal) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (transaction_id) DO NOTHING
      """,
      [transactionID, url, dueAt, dueAt, host, portal])
  }

  /// The due callbacks, soonest first.
  /// - Parameters:
  ///   - hosts: hosts to leave out.
  ///   - portals: portals to leave out.
  package func callbacks(
    dueBy now: Timestamp, without hosts: [String], portals: [String] = [], limit: Int
  ) throws -> [CallbackJob] {
    let (condition, parameters) = due(by: now, without: hosts, portals: portals, limit: limit)
    return try rows("SELECT * FROM callback \(condition)", parameters)
      .map { row throws(CorruptRowError) in try CallbackJob(row) }
  }

  /// As `callbacks`, for one of several servers on PostgreSQL: the callbacks are due again at `until`, in case that
  /// this server ends before it has delivered them. One statement: in a serializable transaction, it would conflict
  /// with the answers that add callbacks meanwhile.
  /// - Returns: the callbacks, each with the time at which it was due; and the number of those that cannot be read.
  package func claimCallbacks(
    dueBy now: Timestamp, until: Timestamp, without hosts: [String], portals: [String], limit: Int
  ) throws -> (jobs: [CallbackJob], unreadable: Int) {
    let (condition, parameters) = due(by: now, without: hosts, portals: portals, limit: limit)
    let claimed = try rows(
      """
      WITH due AS (
        SELECT transaction_id AS id, due_at_ms AS was_due_at_ms FROM callback \(condition)
        \(transaction.lockingRows)
      )
      UPDATE callback SET due_at_ms = ? FROM due WHERE transaction_id = due.id RETURNING callback.*, was_due_at_ms
      """, parameters + [until])
    let jobs = claimed.compactMap { try? CallbackJob($0, due: "was_due_at_ms") }
    return (jobs.sorted { $0.dueAt < $1.dueAt }, claimed.count - jobs.count)
  }

  /// The end of a query for due callbacks, and its parameters.
  private func due(
    by now: Timestamp, without hosts: [String], portals: [String], limit: Int
  ) -> (condition: String, parameters: [any SQLParameter]) {
    // Mostly nothing is left out: then the database has no lists to parse.
    let isWhole = hosts.isEmpty && portals.isEmpty
    let others = "AND host NOT IN (\(dialect.textsOfList)) AND portal NOT IN (\(dialect.textsOfList))"
    let lists = isWhole ? [] : [hosts, portals].map { String(decoding: JSON.encode($0), as: UTF8.self) }
    return ("WHERE due_at_ms <= ? \(isWhole ? "" : others) ORDER BY due_at_ms LIMIT ?", [now] + lists + [limit])
  }

  /// Makes a claimed callback due as it was, unless another server has claimed it since.
  package func returnCallback(_ job: CallbackJob) throws {
    try run(
      "UPDATE callback SET due_at_ms = ? WHERE transaction_id = ? AND due_at_ms = ?",
      [job.dueAt, job.transactionID, job.rowDueAt])
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

  /// Stores that one more delivery has failed, unless another server has claimed the callback since.
  package func postponeCallback(_ job: CallbackJob, until dueAt: Timestamp) throws {
    try run(
      "UPDATE callback SET attempts = ?, due_at_ms = ? WHERE transaction_id = ? AND due_at_ms = ?",
      [job.attempts + 1, dueAt, job.transactionID, job.rowDueAt])
  }
}
