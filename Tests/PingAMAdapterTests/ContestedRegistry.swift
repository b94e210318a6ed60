// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Synchronization
import Testing
import Vault

/// A vault with a concurrent change at the most inconvenient moment: between the read and the change of an account.
final class ContestedRegistry: SharedEnrollmentRegistry, AuditRecorder {
  private let vault: Vault
  private let meanwhile: @Sendable () throws -> Void
  private let changesLeft: Mutex<Int>

  /// - Parameters:
  ///   - changes: the number of changes that are applied first.
  ///   - meanwhile: the concurrent change, applied once.
  init(_ vault: Vault, after changes: Int = 0, meanwhile: @escaping @Sendable () throws -> Void) {
    self.vault = vault
    self.meanwhile = meanwhile
    changesLeft = Mutex(changes)
  }

  func record(_ entry: AuditEntry) throws(StateStoreError) { try vault.record(entry) }
  func servers() throws(StateStoreError) -> [TokenServerRecord] { try vault.servers() }
  func accounts() throws(StateStoreError) -> [AccountRecord] { try vault.accounts() }
  func put(_ server: TokenServerRecord) throws(StateStoreError) { try vault.put(server) }
  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(StateStoreError) { try vault.put(account, entry) }
  func change(_ known: AccountRecord, _ change: AccountChange) throws(StateStoreError) -> Bool {
    let isTheMoment = changesLeft.withLock { left in
      left -= 1
      return left == -1
    }
    if isTheMoment { do { try meanwhile() } catch { Issue.record(error) } }
    return try vault.change(known, change)
  }
}
