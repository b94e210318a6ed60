public import MobileAuth

/// Why messages for an account are not brought where somebody wants them.
public enum MailboxRefusal: Error, Equatable, Sendable, CustomStringConvertible {
  /// It is not what a mailbox has to be.
  case malformed(mustBe: String)
  case taken(String, by: AccountID)
  /// AM may have taken the registration with this one.
  case registeredWith(String)

  public var description: String {
    switch self {
    case .malformed(let rule): "a mailbox is \(rule)"
    case .taken(let mailbox, let account):
      "\"\(mailbox.forPeople)\" is the mailbox of the account \"\(account)\"; name another"
    case .registeredWith(let mailbox):
      "AM may have heard of the mailbox \"\(mailbox.forPeople)\" with this code already: name the same, or none, or "
        + "ask for a new QR code"
    }
  }
}

extension PingAM {
  /// What a mailbox has to be and this text is not; nil if it can be one.
  public static func rule(brokenByMailbox text: String) -> String? {
    guard (1...512).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      return "1 to 512 printable characters of ASCII without blanks"
    }
    // Wildcards, and what belongs to the broker (MQTT 5 §4.7.1, §4.7.2, §4.8.2).
    guard !text.hasPrefix("$"), !text.utf8.contains(where: { "+#".utf8.contains($0) }) else {
      return "what can be a topic at a broker: without + and #, and not beginning with $"
    }
    return nil
  }

  /// What tells two accounts' messages apart at a broker, for whoever may read or write there, is the topic.
  /// - Throws: `MailboxRefusal`, `CustodyFault`.
  public static func check(
    mailbox: String, for account: AccountID, in registry: any EnrolmentRegistry
  ) throws {
    if let broken = rule(brokenByMailbox: mailbox) { throw MailboxRefusal.malformed(mustBe: broken) }
    for other in try registry.accounts(atServersOf: kind) where other.id != account {
      guard try self.mailbox(of: other) != mailbox, try wantedMailbox(of: other) != mailbox else {
        throw MailboxRefusal.taken(mailbox, by: other.id)
      }
    }
  }
}
