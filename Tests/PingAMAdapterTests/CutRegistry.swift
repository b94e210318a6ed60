// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Vault

/// A registry that simulates a power loss after AM's response: the response is not stored.
final class CutRegistry: SharedEnrolmentRegistry, AuditRecorder {
  private let vault: Vault

  init(_ vault: Vault) { self.vault = vault }

  func record(_ entry: AuditEntry) throws(CustodyFault) { try vault.record(entry) }
  func servers() throws(CustodyFault) -> [TokenServerRecord] { try vault.servers() }
  func accounts() throws(CustodyFault) -> [AccountRecord] { try vault.accounts() }
  func put(_ server: TokenServerRecord) throws(CustodyFault) { try vault.put(server) }
  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(CustodyFault) { try vault.put(account, entry) }
  func change(_ known: AccountRecord, _ change: AccountChange) throws(CustodyFault) -> Bool {
    if case .put(let account, _) = change, account.stage == .active { throw .storage("the power is gone") }
    return try vault.change(known, change)
  }
}
