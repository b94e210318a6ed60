// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Synchronization

/// The queue of changes that become durable with the next transaction.
extension Vault {
  enum Deferred {
    case change(DeferredChange)
    /// The end of a right attempt, whose count this is.
    case clearing(PINRecord)
    /// A push message to store.
    case message(DeliveredMessage)
    /// How the request of a push message ended, and the idempotency key of its answer.
    case messageEnd(TransactionID, DeliveredMessage.State, answerKey: String?)
  }

  package func enqueue(_ change: DeferredChange) { enqueue(.change(change)) }

  func enqueue(_ change: Deferred) { deferred.withLock { $0.append(change) } }

  /// - Returns: false if a message with that transaction or reference is in the queue.
  /// - Throws: `.io` if as many messages of its account are in the queue as are kept: storage has failed for long.
  func enqueue(_ message: DeliveredMessage) throws(StateStoreError) -> Bool {
    let (isKnown, isFull) = deferred.withLock { changes in
      let queued = changes.compactMap { if case .message(let queued) = $0 { queued } else { nil } }
      let isKnown = queued.contains { $0.transaction == message.transaction || $0.reference == message.reference }
      let isFull = queued.count { $0.account == message.account } >= PushMessageLimits.perAccount
      if !isKnown, !isFull { changes.append(.message(message)) }
      return (isKnown, isFull)
    }
    guard isKnown || !isFull else { throw .io(call: "store", reason: "too many messages wait for storage") }
    return !isKnown
  }

  var deferredChanges: [Deferred] { deferred.withLock { $0 } }

  package var queueLength: Int { deferred.withLock { $0.count } }

  /// Prepares another transaction after one in which a push message could not be stored: the other changes do not
  /// depend on it. A savepoint would not do: after damage was found, SQLite writes nothing more in a transaction, and
  /// other errors end it.
  /// - Parameters:
  ///   - index: of the change that failed.
  ///   - changes: then without this one. A message takes the others of its account with it, and how they ended.
  ///   - leftOut: gets what is to be tried again with the next transaction, in order.
  /// - Returns: false if the transaction cannot do without the change.
  func separate(_ index: Int, of changes: inout [Deferred], _ leftOut: inout [Deferred], _ error: any Error) -> Bool {
    var (account, isDropped): (AccountID?, Bool) = (nil, false)
    switch changes[index] {
    case .change, .clearing: return false
    case .message(let message): account = message.account
    case .messageEnd:
      // Who reads a damaged message reports that.
      switch stateStoreError(error) {
      case .corrupt(.message), .corrupt(.encryptedRecord): isDropped = true
      default: break
      }
    }
    var others: [Deferred] = []
    var transactions: [TransactionID] = []
    for position in changes.indices {
      let change = changes[position]
      switch change {
      case .message(let message) where message.account == account:
        transactions.append(message.transaction)
        leftOut.append(change)
      case .messageEnd(let transaction, _, _) where transactions.contains(transaction): leftOut.append(change)
      // As long as it is in the queue, the request is over.
      case .messageEnd where position == index: if !isDropped { leftOut.append(change) }
      default: others.append(change)
      }
    }
    changes = others
    return true
  }

  /// The transactions whose intents are resolved by a deferred change.
  var resolvedSoon: Set<TransactionID> {
    Set(
      deferredChanges.compactMap {
        if case .change(.resolveIntent(let transaction, _)) = $0 { transaction } else { nil }
      })
  }

  /// The counts that are cleared by a deferred change.
  var clearedSoon: [PINRecord] {
    deferredChanges.compactMap { if case .clearing(let counted) = $0 { counted } else { nil } }
  }
}
