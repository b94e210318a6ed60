// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// Push messages: those that are stored, and the topics where they are delivered.
extension AccountOperations {
  /// The stored messages, the newest first.
  /// - Parameter name: of one account; nil for all.
  /// - Throws: `AccountError.unknownAmong`, `StateStoreError`.
  package func history(of name: String?) throws -> [MessageSummary] {
    let found = try accounts { $0 as? any MessageHistory }.filter { name == nil || $0.account.id.text == name }
    if let name, found.isEmpty {
      throw AccountError.unknownAmong(name, kinds: kinds.names { $0 is any MessageHistory.Type })
    }
    let now = environment.wallClockMilliseconds
    var summaries: [MessageSummary] = []
    for (account, backend) in found {
      for message in try store.messages(of: account.id) {
        summaries.append(try backend.summary(of: message, for: account, now: now))
      }
    }
    return summaries.sorted { $0.receivedAtMilliseconds > $1.receivedAtMilliseconds }
  }

  /// Where an account's messages are delivered.
  /// - Throws: `AccountError.unknownAmong`, `StateStoreError`.
  package func deliveryAddress(of name: String) throws -> DeliveryAddress { try addressed(name).delivery }

  /// Stores the mailbox that the user wants for an account. The service registers it with the server.
  /// - Throws: `LockError` if the account is locked; `AccountError.unknownAmong`, `StateStoreError`, and as
  ///   `MailboxAddressing.check`.
  package func request(mailbox: String, for name: String) throws -> DeliveryAddress {
    let (account, backend, _) = try addressed(name)
    try requireUnlocked(account)
    try backend.check(mailbox: mailbox, for: account.id)
    let changed = try store.update(account.id) { try $0.requesting(mailbox: mailbox) }
    guard let delivery = changed?.delivery else { throw StateStoreError.notFound(.account(account.id)) }
    return delivery
  }

  private func addressed(
    _ name: String
  ) throws -> (account: AccountRecord, backend: any MailboxAddressing, delivery: DeliveryAddress) {
    let found = try accounts { $0 as? any MailboxAddressing }.first { $0.account.id.text == name }
    guard let (account, backend) = found, let delivery = account.delivery else {
      throw AccountError.unknownAmong(name, kinds: kinds.names { $0 is any MailboxAddressing.Type })
    }
    return (account, backend, delivery)
  }
}
