// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// A backend whose servers deliver messages through a channel of their own: an MQTT topic, or the control socket.
package protocol PushReceiver: ServerBackend {
  /// Verifies and stores one message. When it returns, the message is durable.
  /// - Throws: `ReportedError`; of category `.unavailable` if the message must be delivered again.
  func accept(_ message: [UInt8]) throws -> PushAcceptance

  /// Like `accept`, for a channel that redelivers a message until it is acknowledged.
  /// - Returns: whether to acknowledge: the message is durable, or permanently invalid.
  func isFinal(_ message: [UInt8]) -> Bool

  /// The topics where messages may be delivered. Includes accounts that the server has not confirmed yet, and both
  /// topics of an account that changes its topic.
  func mailboxes() throws(StateStoreError) -> Set<String>

  /// Reports whether the delivery channel of a mailbox is up (nil) or why it is not.
  func set(channelFault: String?, of mailbox: String)
}

package enum PushAcceptance: Sendable, Equatable {
  /// Stored; the user will be asked.
  case stored(AccountID)
  /// Received before, perhaps with another message ID; nothing has changed.
  case known(AccountID)
}

/// A backend whose users can choose the topic where messages for an account are delivered.
package protocol MailboxAddressing: PushReceiver {
  /// Returns the rule that the text violates; nil if it can be a mailbox.
  static func rule(brokenByMailbox text: String) -> String?

  /// Checks that a text can be a mailbox and is not the mailbox of another account.
  func check(mailbox: String, for account: AccountID) throws
}

extension AccountRecord {
  /// Returns the account with a mailbox that the server has not confirmed yet.
  /// - Throws: `.notFound` for an account without keys.
  package func requesting(mailbox: String) throws(StateStoreError) -> AccountRecord {
    guard let confirmed = delivery?.mailbox else { throw .notFound(.keys(of: id)) }
    var account = self
    account.delivery = DeliveryAddress(confirmed, wanted: mailbox == confirmed ? nil : mailbox)
    return account
  }
}
