// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// The data stored with an ending that came from the device.
package struct TransactionEnd: Sendable {
  package var receipt: String
  package var idempotencyKey: String
  package var denial: DenialReason?
  /// The `ApprovalReceipt` for the device, if it has keys.
  package var sealed: String?
}

extension ServerRecords {
  /// Ends a transaction; the only way a transaction ends. Of two concurrent endings exactly one succeeds; the callback
  /// is stored in the same database transaction.
  /// - Returns: the effects, or nil if the transaction had ended before.
  package func end(
    _ transaction: Transaction, _ ending: TransactionOutcome, transactionEnd: TransactionEnd? = nil, nowMs: Int64
  ) throws -> Effects? {
    let reason = ending.reason(callbackOnExpiry: transaction.callbackOnExpiry)
    guard try close(transaction.id, ending.state, reason, transactionEnd, nowMs: nowMs) else { return nil }
    var effects = Effects()
    effects.notify(
      transaction.clientID,
      DeviceEvent(
        .requestClosed, transactionID: transaction.id, profileID: transaction.profileID.text,
        reason: ending.closingReason))
    if ending.callsBack(callbackOnExpiry: transaction.callbackOnExpiry) {
      try insertCallback(transaction.id, url: transaction.callbackURI, dueAtMs: nowMs)
      effects.callbacksDue = true
    }
    return effects
  }

  package func failOpenTransactions(of profile: ProfileName, nowMs: Int64) throws -> Effects {
    var effects = Effects()
    for transaction in try openTransactions(of: profile.clientID, nowMs: nowMs)
    where transaction.profileID == profile.id {
      try end(transaction, .enrollmentRemoved, nowMs: nowMs).map { effects.add($0) }
    }
    return effects
  }

  package func supersede(userID: UserID, type: String, on clientID: ClientID, nowMs: Int64) throws -> Effects {
    var effects = Effects()
    for transaction in try openTransactions(of: clientID, nowMs: nowMs)
    where transaction.userID == userID && transaction.type == type {
      try end(transaction, .superseded, nowMs: nowMs).map { effects.add($0) }
    }
    return effects
  }
}
