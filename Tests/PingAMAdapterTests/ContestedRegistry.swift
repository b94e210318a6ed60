import MobileAuth
import Synchronization
import Testing
import Vault

/// A vault in which something else happens at the worst moment: an account was read, and is about to be changed.
final class ContestedRegistry: SharedEnrolmentRegistry, AuditRecorder {
  private let vault: Vault
  private let meanwhile: @Sendable () throws -> Void
  private let changesLeft: Mutex<Int>

  /// - Parameters:
  ///   - changes: so many are let through before it.
  ///   - meanwhile: happens once.
  init(_ vault: Vault, after changes: Int = 0, meanwhile: @escaping @Sendable () throws -> Void) {
    self.vault = vault
    self.meanwhile = meanwhile
    changesLeft = Mutex(changes)
  }

  func record(_ entry: AuditEntry) throws(CustodyFault) { try vault.record(entry) }
  func servers() throws(CustodyFault) -> [TokenServerRecord] { try vault.servers() }
  func accounts() throws(CustodyFault) -> [AccountRecord] { try vault.accounts() }
  func put(_ server: TokenServerRecord) throws(CustodyFault) { try vault.put(server) }
  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(CustodyFault) { try vault.put(account, entry) }
  func change(_ known: AccountRecord, _ change: AccountChange) throws(CustodyFault) -> Bool {
    let isTheMoment = changesLeft.withLock { left in
      left -= 1
      return left == -1
    }
    if isTheMoment { do { try meanwhile() } catch { Issue.record(error) } }
    return try vault.change(known, change)
  }
}
