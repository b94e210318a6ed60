// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Secrets
package import ServerBackends

extension PingAMBackend: FirstPIN {}

extension PingAMBackend: LateConfirmation {}

extension PingAMBackend: AccountLocks {
  package static let locksWithPolicy = true
}

extension PingAMBackend: FormerAccounts {
  package static func upgraded(_ former: AccountRecord) throws(StateStoreError) -> AccountRecord {
    if former.secrets.count == 0 { return former }
    let decoded = try FormerMechanism(former)
    var account = decoded.mechanism.stored(in: former)
    account.lock = decoded.lockedBy.map { UserLock(policy: $0) }
    return account
  }
}

extension PingAMBackend: ReachCheck {
  package func reach(_ server: TokenServerRecord, accounts: [AccountRecord]) async throws {
    try await PingAM.reach(accounts, over: try http(to: server, of: accounts))
  }
}

extension PingAMBackend: MessageHistory {
  package func summary(
    of message: DeliveredMessage, for account: AccountRecord, now: Int64
  ) throws(StateStoreError) -> MessageSummary {
    try PingAM.summary(of: message, for: account, now: now)
  }
}

extension PingAMBackend: MailboxAddressing {
  package func accept(_ message: [UInt8]) throws -> PushAcceptance { try ingress.accept(message) }

  package func isFinal(_ message: [UInt8]) -> Bool { ingress.isFinal(message) }

  package func set(channelFault: String?, of mailbox: String) { ingress.set(channelFault: channelFault, of: mailbox) }

  package func mailboxes() throws(StateStoreError) -> Set<String> {
    let deliveries = try context.store.accounts(atServersOf: Self.kind).compactMap(\.delivery)
    return Set(deliveries.flatMap { [$0.mailbox, $0.wanted].compactMap(\.self) })
  }

  package static func rule(brokenByMailbox text: String) -> String? { PingAM.rule(brokenByMailbox: text) }

  package func check(mailbox: String, for account: AccountID) throws {
    try PingAM.check(mailbox: mailbox, for: account, in: context.store)
  }
}
