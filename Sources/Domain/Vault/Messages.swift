// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import SQLite

/// The push message store. Messages are encrypted because they reveal who logs in, and from where.
extension Vault: PushMessageStore {
  private static let columns = "txn, account, reference, received, state, answer_key, box"
  /// A message whose answer is being sent is needed for retries.
  private static let hasNoIntent = "NOT EXISTS (SELECT 1 FROM intents WHERE intents.txn = messages.txn)"

  package func store(
    _ message: DeliveredMessage, whenReadable: () -> Void
  ) throws(StateStoreError) -> Bool {
    let isStored = try snapshot { connection in
      guard try hasAccount(of: message, on: connection) else {
        throw StateStoreError.notFound(.account(message.account))
      }
      return try isKnown(message, on: connection)
    }
    guard !isStored else { return false }
    let isNew = try enqueue(message)
    if isNew { whenReadable() }
    // If it cannot be written, the message stays in the queue, and each transaction tries again.
    try flush()
    if try !snapshot({ try isKnown(message, on: $0) }) {
      // Throws why it could not be written. Another process may have removed or renamed the account meanwhile.
      try transaction { connection in
        try insertIfNew(message, on: connection)
        guard try isKnown(message, on: connection) else { throw StateStoreError.notFound(.account(message.account)) }
      }
    }
    return isNew
  }

  /// - Throws: `.corrupt` if it is damaged; the lists of messages are without it.
  package func message(_ transaction: TransactionID) throws(StateStoreError) -> DeliveredMessage? {
    try read("WHERE txn = ?", transaction.text, isList: false) { $0.transaction == transaction }.first
  }

  package func pendingMessages() throws(StateStoreError) -> [DeliveredMessage] {
    try read("WHERE state = ?", DeliveredMessage.State.pending.rawValue) { _ in true }.filter { $0.state == .pending }
  }

  /// The messages of one account, newest first.
  package func messages(of account: AccountID) throws(StateStoreError) -> [DeliveredMessage] {
    try read("WHERE account = ?", account.text) { $0.account == account }.reversed()
  }

  package func end(_ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?) {
    enqueue(.messageEnd(transaction, state, answerKey: answerKey))
  }

  /// Reads stored messages, and those in the queue that `matches` selects, in order of arrival.
  private func read(
    _ condition: String, _ value: String, isList: Bool = true, matches: @Sendable (DeliveredMessage) -> Bool
  ) throws(StateStoreError) -> [DeliveredMessage] {
    // Before the snapshot: what is stored meanwhile is in it.
    let changes = deferredChanges
    return try snapshot { connection in
      var found = try messages(condition, value, isList: isList, on: connection)
      for case .message(let queued) in changes where matches(queued) {
        if try message(queued.transaction, on: connection) == nil { found.append(queued) }
      }
      for case .messageEnd(let transaction, let state, let answerKey) in changes {
        guard let index = found.firstIndex(where: { $0.transaction == transaction && $0.state == .pending }) else {
          continue
        }
        (found[index].state, found[index].answerKey) = (state, answerKey)
      }
      return found
    }
  }

  /// Stores a message of the queue, unless it is known or its account has been removed since.
  func insertIfNew(_ message: DeliveredMessage, on connection: borrowing Connection) throws {
    guard try hasAccount(of: message, on: connection), try !isKnown(message, on: connection) else { return }
    try insert(message, on: connection)
    try connection.run(
      """
      DELETE FROM messages WHERE account = ? AND sequence NOT IN
        (SELECT sequence FROM messages WHERE account = ? ORDER BY sequence DESC LIMIT ?) AND \(Self.hasNoIntent)
      """, message.account.text, message.account.text, Int64(PushMessageLimits.perAccount))
    try connection.run(
      """
      DELETE FROM messages WHERE sequence NOT IN (SELECT sequence FROM messages ORDER BY sequence DESC LIMIT ?)
        AND \(Self.hasNoIntent)
      """, Int64(PushMessageLimits.total))
  }

  func end(
    _ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?,
    on connection: borrowing Connection
  ) throws {
    guard var message = try message(transaction, on: connection), message.state == .pending else { return }
    message.state = state
    message.answerKey = answerKey
    try update(message, on: connection)
  }

  private func hasAccount(of message: DeliveredMessage, on connection: borrowing Connection) throws -> Bool {
    try !connection.rows("SELECT 1 FROM accounts WHERE id = ?", message.account.text) { try $0.integer(0) }.isEmpty
  }

  private func isKnown(_ message: DeliveredMessage, on connection: borrowing Connection) throws -> Bool {
    try !connection.rows(
      "SELECT 1 FROM messages WHERE txn = ? OR reference = ?", message.transaction.text, message.reference
    ) { try $0.integer(0) }.isEmpty
  }

  /// Encrypts messages again under the new account ID, which is part of their associated data.
  func moveMessages(of old: AccountID, to new: AccountID, on connection: borrowing Connection) throws {
    for message in try messages("WHERE account = ?", old.text, on: connection) {
      let moved = DeliveredMessage(
        transaction: message.transaction, account: new, reference: message.reference,
        receivedAtMilliseconds: message.receivedAtMilliseconds, state: message.state, answerKey: message.answerKey,
        contents: message.contents)
      try connection.run("UPDATE messages SET account = ? WHERE txn = ?", new.text, message.transaction.text)
      try update(moved, on: connection)
    }
  }

  private func message(
    _ transaction: TransactionID, on connection: borrowing Connection
  ) throws -> DeliveredMessage? {
    try messages("WHERE txn = ?", transaction.text, isList: false, on: connection).first
  }

  /// - Parameter isList: whether damaged messages are left out.
  private func messages(
    _ condition: String, _ value: String, isList: Bool = true, on connection: borrowing Connection
  ) throws -> [DeliveredMessage] {
    try connection.rows(
      """
      SELECT \(Self.columns), EXISTS (SELECT 1 FROM intents WHERE intents.txn = messages.txn)
      FROM messages \(condition) ORDER BY sequence
      """, value
    ) { row in
      isList ? try unlessDamaged { try message(in: row) } : try message(in: row)
    }.compactMap(\.self)
  }

  private func message(in row: borrowing Row) throws -> DeliveredMessage {
    let text = try row.text(0)
    guard let transaction = TransactionID(text), let state = DeliveredMessage.State(rawValue: try row.text(4)) else {
      throw StateStoreError.corrupt(.message(text))
    }
    let (account, reference) = (AccountID(try row.text(1)), try row.text(2))
    let (received, answerKey) = (try row.integer(3), try row.optionalText(5))
    guard (0...KnownTime.latest * 1000).contains(received) else { throw StateStoreError.corrupt(.message(text)) }
    let associated = associatedData(of: transaction, account, reference, received, state, answerKey)
    return DeliveredMessage(
      transaction: transaction, account: account, reference: reference, receivedAtMilliseconds: received, state: state,
      answerKey: answerKey, isBeingAnswered: try row.integer(7) != 0,
      contents: try keys.open(try row.blob(6), at: associated))
  }

  private func insert(_ message: DeliveredMessage, on connection: borrowing Connection) throws {
    try connection.run(
      "INSERT INTO messages (\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?)", message.transaction.text,
      message.account.text, message.reference, message.receivedAtMilliseconds, message.state.rawValue,
      message.answerKey, sealedBytes(of: message))
  }

  private func update(_ message: DeliveredMessage, on connection: borrowing Connection) throws {
    try connection.run(
      "UPDATE messages SET state = ?, answer_key = ?, box = ? WHERE txn = ?", message.state.rawValue,
      message.answerKey, sealedBytes(of: message), message.transaction.text)
  }

  private func sealedBytes(of message: DeliveredMessage) throws -> [UInt8] {
    try keys.seal(
      message.contents,
      at: associatedData(
        of: message.transaction, message.account, message.reference, message.receivedAtMilliseconds, message.state,
        message.answerKey))
  }

  private func associatedData(
    of transaction: TransactionID, _ account: AccountID, _ reference: String, _ received: Int64,
    _ state: DeliveredMessage.State, _ answerKey: String?
  ) -> CanonicalBytes {
    var associated = CanonicalBytes("messages", transaction.text, account.text, reference, state.rawValue, answerKey)
    associated.add(received)
    return associated
  }
}
