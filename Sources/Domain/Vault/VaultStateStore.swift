// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import SQLite
package import Secrets

extension Vault: EnrollmentRegistry {}

extension Vault: StateStore {
  /// Appends an audit entry. Entries that one server's requests cause without a user action are limited to
  /// `hourlyLimit` per hour.
  package func record(_ entry: AuditEntry) throws(StateStoreError) {
    try transaction { connection in
      var counts = HourlyCounts()
      try append(bounded: entry, &counts, on: connection)
    }
  }

  /// A second intent for a transaction replaces the first: after a restart the user has decided again.
  /// - Throws: `.notFound` if the token server has no such account here.
  package func journal(_ intent: AnswerIntent, _ entry: AuditEntry) throws(StateStoreError) {
    try transaction { connection in
      let owner = try connection.rows(
        "SELECT 1 FROM accounts WHERE id = ? AND server = ?", intent.account.text, intent.server.text
      ) { try $0.integer(0) }
      guard !owner.isEmpty else {
        throw StateStoreError.notFound(.accountAt(intent.account, intent.server))
      }
      try write(intent, on: connection)
      try append(entry, on: connection)
    }
  }

  func write(_ intent: AnswerIntent, on connection: borrowing Connection) throws {
    let ciphertext = try intent.body.map {
      try keys.seal(SecretBytes(copying: $0), at: associatedData(ofBodyOf: intent))
    }
    try connection.run(
      """
      INSERT INTO intents (txn, server, account, idempotency_key, decision, mark, body) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (txn) DO UPDATE SET server = excluded.server, account = excluded.account,
        idempotency_key = excluded.idempotency_key, decision = excluded.decision, mark = excluded.mark,
        body = excluded.body
      """, intent.transaction.text, intent.server.text, intent.account.text, intent.idempotencyKey,
      intent.decision.text, keys.mac(row(of: intent)), ciphertext)
  }

  /// If the intent was deleted with its account, the end is recorded nevertheless.
  package func resolveIntent(_ transaction: TransactionID, _ entry: AuditEntry) throws(StateStoreError) {
    try self.transaction { connection in
      var counts = HourlyCounts()
      try resolveIntent(transaction, entry, &counts, on: connection)
    }
  }

  private func resolveIntent(
    _ transaction: TransactionID, _ entry: AuditEntry, _ counts: inout HourlyCounts, on connection: borrowing Connection
  ) throws {
    let isAnswered = try connection.run("DELETE FROM intents WHERE txn = ?", transaction.text) > 0
    try append(bounded: entry, isAnswered: isAnswered, &counts, on: connection)
  }

  /// - Parameter counts: shared by the changes of one transaction.
  func apply(_ deferred: Deferred, _ counts: inout HourlyCounts, on connection: borrowing Connection) throws {
    switch deferred {
    case .change(.record(let entry)): try append(bounded: entry, &counts, on: connection)
    case .change(.resolveIntent(let transaction, let entry)):
      try resolveIntent(transaction, entry, &counts, on: connection)
    case .clearing(let counted): try counted.clear(on: connection, keys)
    case .message(let message): try insertIfNew(message, on: connection)
    case .messageEnd(let transaction, let state, let answerKey):
      try end(transaction, as: state, answerKey: answerKey, on: connection)
    }
  }

  /// Ordered by transaction, without those that are damaged.
  package func unresolvedIntents() throws(StateStoreError) -> [AnswerIntent] {
    let resolved = resolvedSoon
    return try knownIntents.value { () throws(StateStoreError) in
      try snapshot { connection in try intents(on: connection) }
    }.filter { !resolved.contains($0.transaction) }
  }

  func intents(on connection: borrowing Connection) throws -> [AnswerIntent] {
    try storedIntents(on: connection).compactMap(\.intent)
  }

  /// Deletes the intents that are damaged: they must not be sent.
  /// - Parameter entry: makes the audit entry for one, from its transaction as stored, which may be malformed.
  /// - Returns: the entries.
  package func takeDamagedIntents(_ entry: (String) -> AuditEntry) throws(StateStoreError) -> [AuditEntry] {
    let damaged = try snapshot { connection in try storedIntents(on: connection).filter { $0.intent == nil } }
    guard !damaged.isEmpty else { return [] }
    let entries = damaged.map { entry($0.transaction) }
    try transaction { connection in
      for stored in damaged { try connection.run("DELETE FROM intents WHERE rowid = ?", stored.row) }
      for entry in entries { try append(entry, on: connection) }
    }
    return entries
  }

  /// - Returns: each row, the transaction as stored, and the intent; nil if it is damaged.
  private func storedIntents(
    on connection: borrowing Connection
  ) throws -> [(row: Int64, transaction: String, intent: AnswerIntent?)] {
    try connection.rows(
      """
      SELECT txn, server, account, idempotency_key, decision, mark, body, rowid, CAST(txn AS BLOB)
      FROM intents ORDER BY txn
      """
    ) { row in
      (try row.integer(7), try row.lossyText(8), try unlessDamaged { try intent(in: row) })
    }
  }

  private func intent(in row: borrowing Row) throws -> AnswerIntent {
    guard let transaction = TransactionID(try row.text(0)), let decision = Decision(text: try row.text(4)) else {
      throw StateStoreError.corrupt(.intent(try row.text(0)))
    }
    var intent = AnswerIntent(
      transaction: transaction, server: TokenServerID(try row.text(1)), account: AccountID(try row.text(2)),
      idempotencyKey: try row.text(3), decision: decision)
    guard keys.isValidMAC(try row.blob(5), of: self.row(of: intent)) else {
      throw StateStoreError.corrupt(.intent(transaction.text))
    }
    if let ciphertext = try row.optionalBlob(6) {
      intent.body = try keys.open(ciphertext, at: associatedData(ofBodyOf: intent)).withExposedSecret { Array($0) }
    }
    return intent
  }

  /// Sets the account's stage to `mustEnrollAgain` and deletes its secrets, PIN, messages and one-time passwords. Its
  /// unsettled intents stay.
  package func dropKeys(
    of account: AccountID, if enrollment: EnrollmentID?, keeping remainder: SecretBytes?, _ entry: AuditEntry
  ) throws(StateStoreError) {
    try transaction(erasing: true) { connection in
      try require(enrollment, of: account, on: connection)
      try dropKeys(of: account, keeping: remainder, entry, enrollment, on: connection)
    }
  }

  private func require(
    _ enrollment: EnrollmentID?, of id: AccountID, on connection: borrowing Connection
  ) throws {
    guard let enrollment, let kept = try account(id, on: connection) else { return }
    guard kept.enrollment == enrollment else { throw StateStoreError.conflict(.account(id), .enrolledAgain) }
  }

  /// - Parameter enrollment: the enrollment whose keys are dropped; nil if it is not known.
  func dropKeys(
    of account: AccountID, keeping remainder: SecretBytes? = nil, _ entry: AuditEntry, _ enrollment: EnrollmentID?,
    on connection: borrowing Connection
  ) throws {
    let found = try connection.rows("SELECT server, profile FROM accounts WHERE id = ?", account.text) { row in
      AccountRecord(
        id: account, server: TokenServerID(try row.text(0)), profile: try row.text(1), stage: .mustEnrollAgain,
        enrollment: enrollment ?? .random(), secrets: SecretBytes(copying: []))
    }
    guard var kept = found.first else { throw StateStoreError.notFound(.account(account)) }
    if let remainder, let known = try self.account(account, on: connection) {
      kept = known.with(remainder)
      kept.stage = .mustEnrollAgain
    }
    try put(kept, on: connection)
    try connection.run("DELETE FROM pins WHERE account = ?", account.text)
    try connection.run("DELETE FROM messages WHERE account = ?", account.text)
    try connection.run("DELETE FROM one_time_passwords WHERE account = ?", account.text)
    try append(entry, on: connection)
  }

  /// Deletes the account with its unsettled intents; its name stays in the audit entries.
  package func wipe(
    account: AccountID, if enrollment: EnrollmentID?, _ entry: AuditEntry
  ) throws(StateStoreError) {
    try transaction(erasing: true) { connection in
      try require(enrollment, of: account, on: connection)
      try wipe(account: account, entry, on: connection)
    }
  }

  func wipe(account: AccountID, _ entry: AuditEntry, on connection: borrowing Connection) throws {
    guard try connection.run("DELETE FROM accounts WHERE id = ?", account.text) == 1 else {
      throw StateStoreError.notFound(.account(account))
    }
    try append(entry, on: connection)
  }

  /// Deletes the server and its accounts with their unsettled intents; their names stay in the audit entries.
  package func wipe(
    server: TokenServerID, if registration: EnrollmentID?, _ entry: AuditEntry
  ) throws(StateStoreError) {
    try transaction(erasing: true) { connection in
      if let registration, let kept = try self.server(server, on: connection), kept.registration != registration {
        throw StateStoreError.conflict(.server(server), .enrolledAgain)
      }
      guard try connection.run("DELETE FROM servers WHERE id = ?", server.text) == 1 else {
        throw StateStoreError.notFound(.server(server))
      }
      try append(entry, on: connection)
    }
  }

  private func associatedData(ofBodyOf intent: AnswerIntent) -> CanonicalBytes {
    CanonicalBytes("intents body", intent.transaction.text, intent.idempotencyKey)
  }

  private func row(of intent: AnswerIntent) -> CanonicalBytes {
    CanonicalBytes(
      "intents", intent.transaction.text, intent.server.text, intent.account.text, intent.idempotencyKey,
      intent.decision.text)
  }
}

/// The encoding in the table `intents`: "accept", or "deny" and the reason.
extension Decision {
  fileprivate var text: String {
    switch self {
    case .accept: "accept"
    case .deny(let reason): "deny \(reason.rawValue)"
    }
  }

  fileprivate init?(text: String) {
    if text == "accept" {
      self = .accept
      return
    }
    guard text.hasPrefix("deny "), let reason = DenialReason(rawValue: String(text.dropFirst(5))) else { return nil }
    self = .deny(reason)
  }
}
