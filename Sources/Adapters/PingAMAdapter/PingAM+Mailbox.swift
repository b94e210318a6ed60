// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import MobileAuth
package import ServerBackends

/// Errors of choosing an account's mailbox (its device token at AM, and its topic at an MQTT broker).
package enum MailboxError: ReportedError, Equatable {
  /// The text cannot be a mailbox.
  case malformed(mustBe: String)
  case taken(String, by: AccountID)
  /// AM may already have received the registration with this mailbox.
  case registeredWith(String)

  package var category: ErrorCategory { .usage }

  package var description: String {
    switch self {
    case .malformed(let rule): "a mailbox is \(rule)"
    case .taken(let mailbox, let account):
      "\"\(mailbox.sanitized)\" is the mailbox of the account \"\(account)\"; name another"
    case .registeredWith(let mailbox):
      "AM may already know the mailbox \"\(mailbox.sanitized)\" from this QR code: use the same mailbox, omit it, or "
        + "ask for a new QR code"
    }
  }
}

extension PingAM {
  /// Returns the rule that the text violates; nil if it can be a mailbox.
  package static func rule(brokenByMailbox text: String) -> String? {
    guard (1...512).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      return "1 to 512 printable ASCII characters without spaces"
    }
    // Topic wildcards, and topics reserved for the broker (MQTT 5 §4.7.1, §4.7.2, §4.8.2).
    guard !text.hasPrefix("$"), !text.utf8.contains(where: { "+#".utf8.contains($0) }) else {
      return "a valid MQTT topic: without + and #, and not starting with $"
    }
    return nil
  }

  /// Checks that a text can be a mailbox and is not the mailbox of another account: at a broker only the topic
  /// separates two accounts' messages.
  /// - Throws: `MailboxError`, `StateStoreError`.
  package static func check(
    mailbox: String, for account: AccountID, in registry: any EnrollmentRegistry
  ) throws {
    if let broken = rule(brokenByMailbox: mailbox) { throw MailboxError.malformed(mustBe: broken) }
    for other in try registry.accounts(atServersOf: kind) where other.id != account {
      guard other.delivery?.mailbox != mailbox, other.delivery?.wanted != mailbox else {
        throw MailboxError.taken(mailbox, by: other.id)
      }
    }
  }
}
