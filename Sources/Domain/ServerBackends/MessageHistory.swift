// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// A backend whose messages are stored on this token.
package protocol MessageHistory: ServerBackend {
  /// Describes a stored message.
  /// - Parameter now: the board's wall clock, in milliseconds since 1970. Used to report a request as expired before
  ///   the service has recorded that.
  func summary(
    of message: DeliveredMessage, for account: AccountRecord, now: Int64
  ) throws(StateStoreError) -> MessageSummary
}

/// A stored push message for display. It contains no secret. The server signed its contents, but an attacker who logs
/// in can influence them.
package struct MessageSummary: Sendable, Equatable {
  package let transaction: TransactionID
  package let account: AccountID
  /// Arrival in milliseconds since 1970, by the board's wall clock.
  package let receivedAtMilliseconds: Int64
  package let state: DeliveredMessage.State
  /// Nil, like `pushType`, `message` and `context`, if the account was enrolled again after the message arrived: its
  /// signature can no longer be verified.
  package let type: String?
  /// The server's name of the type, for programs.
  package let pushType: String?
  package let message: String?
  package let context: String?

  package init(
    transaction: TransactionID, account: AccountID, receivedAtMilliseconds: Int64, state: DeliveredMessage.State,
    type: String?, pushType: String?, message: String?, context: String?
  ) {
    self.transaction = transaction
    self.account = account
    self.receivedAtMilliseconds = receivedAtMilliseconds
    self.state = state
    self.type = type
    self.pushType = pushType
    self.message = message
    self.context = context
  }
}
