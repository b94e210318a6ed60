// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import ServerBackends

extension PingAMBackend: FirstPIN {
  package func pinLength(of account: AccountRecord) throws(StateStoreError) -> Int? {
    try PingAM.pinLength(of: account)
  }

  package func setting(pinLength: Int, of account: AccountRecord) throws -> AccountRecord {
    try PingAM.with(pinLength: pinLength, account)
  }
}

extension PingAMBackend: AccountLocks {
  package func lock(of account: AccountRecord, hasPIN: Bool) throws -> AccountLock? {
    try PingAM.lock(of: account, hasPIN: hasPIN, isTamperedWith: isTamperedWith)
  }

  package func locked(_ account: AccountRecord, with policy: String?, hasPIN: Bool) throws -> AccountRecord {
    try PingAM.lockedManually(account, with: policy, hasPIN: hasPIN, isTamperedWith: isTamperedWith)
  }

  package func unlocked(_ account: AccountRecord, hasPIN: Bool) throws -> AccountRecord {
    try PingAM.unlockedManually(account, hasPIN: hasPIN, isTamperedWith: isTamperedWith)
  }
}

extension PingAMBackend: ReachCheck {
  package func reach(_ server: TokenServerRecord, accounts: [AccountRecord]) async throws {
    try await PingAM.reach(accounts, over: try context.http(to: server.id, pins: PingAM.pins(of: server)))
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
  package func accept(_ message: [UInt8]) throws -> PushAcceptance {
    switch try ingress.accept(message) {
    case .kept(let account): .stored(account)
    case .known(let account): .known(account)
    }
  }

  package func isFinal(_ message: [UInt8]) -> Bool { ingress.isFinal(message) }

  package func set(channelFault: String?, of mailbox: String) { ingress.set(channelFault: channelFault, of: mailbox) }

  package func mailboxes() throws(StateStoreError) -> Set<String> {
    var mailboxes: Set<String> = []
    for account in try context.store.accounts(atServersOf: Self.kind) {
      mailboxes.formUnion([try mailbox(of: account), try pendingMailbox(of: account)].compactMap(\.self))
    }
    return mailboxes
  }

  package static func rule(brokenByMailbox text: String) -> String? { PingAM.rule(brokenByMailbox: text) }

  package func mailbox(of account: AccountRecord) throws(StateStoreError) -> String? {
    try PingAM.mailbox(of: account)
  }

  package func pendingMailbox(of account: AccountRecord) throws(StateStoreError) -> String? {
    try PingAM.pendingMailbox(of: account)
  }

  package func check(mailbox: String, for account: AccountID) throws {
    try PingAM.check(mailbox: mailbox, for: account, in: context.store)
  }

  package func setting(pendingMailbox: String, of account: AccountRecord) throws(StateStoreError) -> AccountRecord {
    try PingAM.settingPendingMailbox(mailbox: pendingMailbox, account)
  }
}
