import Cryptography
import Foundation
import GRDB
import ReferenceProtocol

extension Transaction {
  init(_ row: Row) throws {
    let (method, state): (String, String) = (row["method"], row["state"])
    guard let method = ApprovalRequest.Method(rawValue: method), let state = RequestState(rawValue: state) else {
      throw DatabaseError(message: "transaction with method \(method) and state \(state)")
    }
    self.init(
      id: row["id"], userID: row["user_id"], clientID: row["client_id"], profileID: row["profile_id"],
      type: row["type"], method: method, callbackURI: row["callback_uri"], message: row["message"],
      nonce: row["nonce"], request: row.bytes("request"), callbackOnExpiry: row["callback_on_expiry"],
      createdAtMs: row["created_at_ms"], expiresAtMs: row["expires_at_ms"], state: state,
      reason: (row["reason"] as String?).flatMap(NotAuthenticatedReason.init), receipt: row["receipt"],
      idempotencyKey: row["idempotency_key"], pinAttempts: row["pin_attempts"],
      formerRequests: row.bytes("former_requests"))
  }
}

/// What goes with an ending that came from the device.
struct Settlement: Sendable {
  var receipt: String
  var idempotencyKey: String
  var denial: DenialReason?
}

extension Database {
  func transaction(_ id: String) throws -> Transaction? {
    try row("SELECT * FROM mobile_auth_transaction WHERE id = ?", [id]).map(Transaction.init)
  }

  /// Newest first, ties by transaction id; without those whose time is over.
  func openTransactions(of clientID: String, nowMs: Int64) throws -> [Transaction] {
    try rows(
      """
      SELECT * FROM mobile_auth_transaction WHERE client_id = ? AND state = 'open' AND expires_at_ms > ?
      ORDER BY created_at_ms DESC, id
      """, [clientID, nowMs]
    ).map(Transaction.init)
  }

  func openTransactionCount(of userID: String, on clientID: String, nowMs: Int64) throws -> Int {
    try row(
      """
      SELECT COUNT(*) AS count FROM mobile_auth_transaction
      WHERE client_id = ? AND user_id = ? AND state = 'open' AND expires_at_ms > ?
      """, [clientID, userID, nowMs]
    ).map { $0["count"] } ?? 0
  }

  func insert(_ transaction: Transaction) throws {
    try run(
      """
      INSERT INTO mobile_auth_transaction (id, user_id, client_id, profile_id, type, method, callback_uri, message,
        nonce, request, callback_on_expiry, created_at_ms, expires_at_ms, state)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        transaction.id, transaction.userID, transaction.clientID, transaction.profileID, transaction.type,
        transaction.method.rawValue, transaction.callbackURI, transaction.message, transaction.nonce,
        Data(transaction.request), transaction.callbackOnExpiry, transaction.createdAtMs, transaction.expiresAtMs,
        transaction.state.rawValue,
      ])
  }

  /// The one way a transaction ends. The condition and the change are one statement, so of two that end it at the
  /// same time exactly one does; its callback is stored in the same database transaction.
  /// - Returns: what follows from it, or nil if it had ended before.
  func end(
    _ transaction: Transaction, _ ending: Ending, settlement: Settlement? = nil, nowMs: Int64
  ) throws -> Effects? {
    let changed = try run(
      """
      UPDATE mobile_auth_transaction
      SET state = ?, reason = ?, denial_reason = ?, receipt = ?, idempotency_key = ?, ended_at_ms = ?
      WHERE id = ? AND state = 'open'
      """,
      [
        ending.state.rawValue, ending.reason(callbackOnExpiry: transaction.callbackOnExpiry)?.rawValue,
        settlement?.denial?.rawValue, settlement?.receipt, settlement?.idempotencyKey, nowMs, transaction.id,
      ])
    guard changed == 1 else { return nil }
    var effects = Effects()
    effects.tell(
      transaction.clientID,
      DeviceEvent(
        .requestClosed, transactionID: transaction.id, profileID: transaction.profileID,
        reason: ending.closingReason))
    if ending.callsBack(callbackOnExpiry: transaction.callbackOnExpiry) {
      try insertCallback(transaction.id, url: transaction.callbackURI, dueAtMs: nowMs)
      effects.callbacksDue = true
    }
    return effects
  }

  /// - Returns: how many bad answers this transaction has had, this one included; 0 if it is not open.
  func countBadAnswer(to id: String) throws -> Int {
    try row(
      """
      UPDATE mobile_auth_transaction SET bad_answers = bad_answers + 1 WHERE id = ? AND state = 'open'
      RETURNING bad_answers
      """, [id]
    ).map { $0["bad_answers"] } ?? 0
  }

  /// One more PIN was judged for this transaction.
  /// - Parameter nonce: what the next answer must repeat.
  /// - Returns: false if it is not open.
  func countPINAttempt(for id: String, nonce: String) throws -> Bool {
    try run(
      """
      UPDATE mobile_auth_transaction SET pin_attempts = pin_attempts + 1, nonce = ? WHERE id = ? AND state = 'open'
      """, [nonce, id]) == 1
  }

  func setRequest(_ transaction: Transaction) throws {
    try run(
      "UPDATE mobile_auth_transaction SET request = ?, former_requests = ? WHERE id = ? AND state = 'open'",
      [Data(transaction.request), Data(transaction.formerRequests), transaction.id])
  }

  func failOpenTransactions(of profile: Profile, nowMs: Int64) throws -> Effects {
    var effects = Effects()
    for transaction in try openTransactions(of: profile.clientID, nowMs: nowMs)
    where transaction.profileID == profile.id {
      try end(transaction, .enrolmentRemoved, nowMs: nowMs).map { effects.add($0) }
    }
    return effects
  }

  func supersede(userID: String, type: String, on clientID: String, nowMs: Int64) throws -> Effects {
    var effects = Effects()
    for transaction in try openTransactions(of: clientID, nowMs: nowMs)
    where transaction.userID == userID && transaction.type == type {
      try end(transaction, .superseded, nowMs: nowMs).map { effects.add($0) }
    }
    return effects
  }
}
