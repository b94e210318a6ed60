// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import ReferenceProtocol
package import TokenServerCore

extension Transaction {
  init(_ row: any SQLRow) throws {
    guard let method = ApprovalRequest.Method(known: try row.text("method")) else {
      throw CorruptRowError("method", "is unknown")
    }
    guard let state = RequestState(rawValue: try row.text("state")) else {
      throw CorruptRowError("state", "is unknown")
    }
    let formerRequests = try row.bytes("former_requests")
    guard formerRequests.count % 32 == 0 else { throw CorruptRowError("former_requests", "is not a list of hashes") }
    let methodUsed = try row.optionalText("method_used")
    guard methodUsed.map({ ApprovalRequest.Method(known: $0) != nil }) != false else {
      throw CorruptRowError("method_used", "is unknown")
    }
    self.init(
      id: try row.text("id"), userID: try row.userID("user_id"), clientID: try row.clientID("client_id"),
      profileID: try row.profileID("profile_id"), type: try row.text("type"), method: method,
      callbackURI: try row.text("callback_uri"), message: try row.optionalText("message"),
      nonce: try row.text("nonce"), request: try row.bytes("request"),
      callbackOnExpiry: try row.flag("callback_on_expiry"), createdAt: try row.time("created_at_ms"),
      expiresAt: try row.time("expires_at_ms"), state: state,
      reason: try row.optionalText("reason").flatMap(NotAuthenticatedReason.init),
      receipt: try row.optionalText("receipt"), idempotencyKey: try row.optionalText("idempotency_key"),
      sealedReceipt: try row.optionalText("sealed_receipt"), pinAttempts: try row.count("pin_attempts"),
      formerRequests: formerRequests)
    authenticator = try row.optionalText("authenticator")
    hasFallback = try row.flag("has_fallback")
    portal = try row.text("portal")
    self.methodUsed = methodUsed.flatMap { ApprovalRequest.Method(known: $0) }
    authenticatorAttempts = try row.count("authenticator_attempts")
    deliveredAt = try row.optionalTime("delivered_at_ms")
  }
}

extension Database {
  /// Returns the readable transactions, newest first, each with the reason if it was denied.
  package func transactions(limit: Int) throws -> [(Transaction, denialReason: String?)] {
    try rows("SELECT * FROM mobile_auth_transaction ORDER BY created_at_ms DESC, id LIMIT ?", [limit])
      .compactMap { row in try? (Transaction(row), row.optionalText("denial_reason")) }
  }

  package func transaction(_ id: String) throws -> Transaction? {
    try row("SELECT * FROM mobile_auth_transaction WHERE id = ?", [id]).map(Transaction.init)
  }

  /// Open transactions, newest first, ties by transaction id. Expired and unreadable ones are left out: the server sets
  /// unreadable rows aside when they expire and when it starts.
  package func openTransactions(of clientID: ClientID, now: Timestamp) throws -> [Transaction] {
    try rows(
      """
      SELECT * FROM mobile_auth_transaction WHERE client_id = ? AND state = 'open' AND expires_at_ms > ?
      ORDER BY created_at_ms DESC, id
      """, [clientID, now]
    ).compactMap { try? Transaction($0) }
  }

  /// Unreadable ones are left out.
  func openTransactions(startedBy portal: String) throws -> [Transaction] {
    try rows("SELECT * FROM mobile_auth_transaction WHERE portal = ? AND state = 'open'", [portal])
      .compactMap { try? Transaction($0) }
  }

  /// The IDs of open transactions without a note of their delivery.
  package func undeliveredTransactions(of clientID: ClientID, now: Timestamp) throws -> [String] {
    try rows(
      """
      SELECT id FROM mobile_auth_transaction
      WHERE client_id = ? AND state = 'open' AND expires_at_ms > ? AND delivered_at_ms IS NULL
      """, [clientID, now]
    ).compactMap { try? $0.text("id") }
  }

  package func openTransactionCount(of userID: UserID, on clientID: ClientID, now: Timestamp) throws -> Int {
    try row(
      """
      SELECT COUNT(*) AS count FROM mobile_auth_transaction
      WHERE client_id = ? AND user_id = ? AND state = 'open' AND expires_at_ms > ?
      """, [clientID, userID, now]
    ).map { try $0.count("count") } ?? 0
  }

  package func isOpen(_ id: String) throws -> Bool {
    try row("SELECT 1 FROM mobile_auth_transaction WHERE id = ? AND state = 'open'", [id]) != nil
  }

  package func insert(_ transaction: Transaction) throws {
    try run(
      """
      INSERT INTO mobile_auth_transaction (id, user_id, client_id, profile_id, type, method, callback_uri, message,
        nonce, request, callback_on_expiry, created_at_ms, expires_at_ms, state, authenticator, has_fallback, portal)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        transaction.id, transaction.userID, transaction.clientID, transaction.profileID, transaction.type,
        transaction.method.rawValue, transaction.callbackURI, transaction.message, transaction.nonce,
        transaction.request, transaction.callbackOnExpiry, transaction.createdAt, transaction.expiresAt,
        transaction.state.rawValue, transaction.authenticator, transaction.hasFallback, transaction.portal,
      ])
  }

  package func close(
    _ id: String, _ state: RequestState, _ reason: NotAuthenticatedReason?, _ transactionEnd: TransactionEnd?,
    now: Timestamp
  ) throws -> Bool {
    try run(
      """
      UPDATE mobile_auth_transaction
      SET state = ?, reason = ?, denial_reason = ?, receipt = ?, idempotency_key = ?, sealed_receipt = ?,
        ended_at_ms = ?
      WHERE id = ? AND state = 'open'
      """,
      [
        state.rawValue, reason?.rawValue, transactionEnd?.denial?.rawValue, transactionEnd?.receipt,
        transactionEnd?.idempotencyKey, transactionEnd?.sealed, now, id,
      ]) == 1
  }

  /// - Returns: the number of invalid answers to this transaction, including this one; 0 if it is not open.
  package func countBadAnswer(to id: String) throws -> Int {
    try row(
      """
      UPDATE mobile_auth_transaction SET bad_answers = bad_answers + 1 WHERE id = ? AND state = 'open'
      RETURNING bad_answers
      """, [id]
    ).map { try $0.count("bad_answers") } ?? 0
  }

  /// Counts a verified PIN attempt for this transaction.
  /// - Parameter nonce: the nonce that the next answer must contain.
  /// - Returns: false if the transaction is not open.
  package func countPINAttempt(for id: String, nonce: String) throws -> Bool {
    try run(
      """
      UPDATE mobile_auth_transaction SET pin_attempts = pin_attempts + 1, nonce = ?, method_used = ?
      WHERE id = ? AND state = 'open'
      """, [nonce, ApprovalRequest.Method.pushWithPIN.rawValue, id]) == 1
  }

  package func countAuthenticatorAttempt(
    for id: String, nonce: String, method: ApprovalRequest.Method
  ) throws -> Bool {
    try run(
      """
      UPDATE mobile_auth_transaction
      SET authenticator_attempts = authenticator_attempts + 1, nonce = ?, method_used = ?
      WHERE id = ? AND state = 'open'
      """, [nonce, method.rawValue, id]) == 1
  }

  /// Notes that open transactions were delivered to their device. Condition and change are one statement, so that of
  /// several notes, also at several servers, exactly one is the first.
  /// - Returns: those for which this is the first note, without transactions of other devices, each with its start.
  package func noteDelivery(
    of ids: [String], to clientID: ClientID, now: Timestamp
  ) throws -> [(id: String, start: Timestamp)] {
    try rows(
      """
      UPDATE mobile_auth_transaction SET delivered_at_ms = ?
      WHERE client_id = ? AND state = 'open' AND expires_at_ms > ? AND delivered_at_ms IS NULL
        AND id IN (\(dialect.textsOfList))
      RETURNING id, created_at_ms
      """, [now, clientID, now, String(decoding: JSON.encode(ids), as: UTF8.self)]
    ).map { (try $0.text("id"), try $0.time("created_at_ms")) }
  }

  package func setRequest(_ transaction: Transaction) throws {
    try run(
      "UPDATE mobile_auth_transaction SET request = ?, former_requests = ? WHERE id = ? AND state = 'open'",
      [transaction.request, transaction.formerRequests, transaction.id])
  }
}
