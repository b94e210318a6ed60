// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// The data stored with an ending that came from the device.
package struct TransactionEnd: Sendable {
  package var receipt: String
  package var idempotencyKey: String
  package var denial: DenialReason?
  /// The `ApprovalReceipt` for the device, if it has keys, and its certificate has not expired.
  package var sealed: String?
}

extension ServerRecords {
  /// Ends a transaction; the only way a transaction ends. Of two concurrent endings exactly one succeeds; the callback
  /// is stored in the same database transaction. The device is notified, unless its answer ended the transaction: then
  /// it gets the reply.
  /// - Parameter transactionEnd: the data of the device's answer; nil if something else ended the transaction.
  /// - Returns: the effects, or nil if the transaction had ended before.
  package func end(
    _ transaction: Transaction, _ ending: TransactionOutcome, transactionEnd: TransactionEnd? = nil, now: Timestamp
  ) throws -> Effects? {
    let reason = ending.reason(callbackOnExpiry: transaction.callbackOnExpiry)
    guard try close(transaction.id, ending.state, reason, transactionEnd, now: now) else { return nil }
    var effects = Effects()
    effects.endings.append(.init(state: ending.state, after: now - transaction.createdAt))
    if transactionEnd == nil {
      effects.notify(
        transaction.clientID,
        DeviceEvent(
          .requestClosed, transactionID: transaction.id, profileID: transaction.profileID.text,
          reason: ending.closingReason))
    }
    if ending.callsBack(callbackOnExpiry: transaction.callbackOnExpiry) {
      try insertCallback(transaction.id, url: transaction.callbackURI, of: transaction.portal, dueAt: now)
      effects.callbacksDue = true
    }
    return effects
  }

  package func failOpenTransactions(of profile: ProfileName, now: Timestamp) throws -> Effects {
    var effects = Effects()
    for transaction in try openTransactions(of: profile.clientID, now: now)
    where transaction.profileID == profile.id {
      try end(transaction, .enrollmentRemoved, now: now).map { effects.add($0) }
    }
    return effects
  }
}
