// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// A push message about a request. Its server has no list of pending requests, so this token must store the message.
package struct DeliveredMessage: Sendable {
  /// The state of the message's request, as far as this token knows.
  package enum State: String, Sendable {
    case pending
    /// The server accepted the answer.
    case approved, denied
    /// An answer was sent, and whether it counted cannot be determined.
    case unknown
    /// The request ended without an answer: refused by the server, abandoned by this token, or expired.
    case failed, expired
  }

  package let transaction: TransactionID
  package let account: AccountID
  /// The sender's message ID.
  package let reference: String
  /// Milliseconds since 1970, by the board's wall clock.
  package let receivedAtMilliseconds: Int64
  package var state: State
  /// The idempotency key of the answer that ended the request.
  package var answerKey: String?
  /// Whether an answer is in the journal and not settled.
  package var isBeingAnswered: Bool
  /// Encoded by the adapter.
  package let contents: SecretBytes

  package init(
    transaction: TransactionID, account: AccountID, reference: String, receivedAtMilliseconds: Int64,
    state: State = .pending, answerKey: String? = nil, isBeingAnswered: Bool = false, contents: SecretBytes
  ) {
    self.transaction = transaction
    self.account = account
    self.reference = reference
    self.receivedAtMilliseconds = receivedAtMilliseconds
    self.state = state
    self.answerKey = answerKey
    self.isBeingAnswered = isBeingAnswered
    self.contents = contents
  }
}

/// The push message store. Keeps recent messages after their requests have ended, so that a message delivered again is
/// not shown again.
package protocol PushMessageStore: Sendable {
  /// Stores a message; it is durable when the call returns. At a limit, deletes the oldest messages of the account or
  /// of all accounts, except messages that are being answered.
  /// - Parameter whenReadable: called for a new message as soon as the other functions return it, while it is written:
  ///   showing the request need not wait for storage.
  /// - Returns: false, without a change, if a message with that transaction or reference exists.
  /// - Throws: `.notFound` if there is no such account. After another error, the message can have been announced by
  ///   `whenReadable`: it stays readable then, and is written with the next change as soon as that is possible, for
  ///   example when the call is repeated.
  func store(_ message: DeliveredMessage, whenReadable: () -> Void) throws(StateStoreError) -> Bool

  /// Returns the message; nil if it was never stored or has been deleted.
  func message(_ transaction: TransactionID) throws(StateStoreError) -> DeliveredMessage?

  /// Pending messages in order of arrival.
  func pendingMessages() throws(StateStoreError) -> [DeliveredMessage]

  /// Records how a pending request ended; durable with the next transaction or `flush` of the state store. Does nothing
  /// if it has ended or does not exist.
  func end(_ transaction: TransactionID, as state: DeliveredMessage.State, answerKey: String?)
}

/// The maximum numbers of stored messages.
package enum PushMessageLimits {
  package static let perAccount = 32
  package static let total = 512
}
