// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Vault

/// A registry that simulates a power loss after AM's response: the response is not stored.
final class CrashingRegistry: SharedEnrollmentRegistry, AuditRecorder {
  private let vault: Vault

  init(_ vault: Vault) { self.vault = vault }

  func record(_ entry: AuditEntry) throws(StateStoreError) { try vault.record(entry) }
  func servers() throws(StateStoreError) -> [TokenServerRecord] { try vault.servers() }
  func accounts() throws(StateStoreError) -> [AccountRecord] { try vault.accounts() }
  func put(_ server: TokenServerRecord) throws(StateStoreError) { try vault.put(server) }
  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(StateStoreError) { try vault.put(account, entry) }
  func change(_ known: AccountRecord, _ change: AccountChange) throws(StateStoreError) -> Bool {
    if case .put(let account, _) = change, account.stage == .active {
      throw .io(call: "write", reason: "the power is gone")
    }
    return try vault.change(known, change)
  }
}
