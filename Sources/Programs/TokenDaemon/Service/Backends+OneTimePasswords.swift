// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
package import MobileAuth
import Vault

extension Backends {
  /// The account whose one-time passwords are meant.
  /// - Parameter name: the account's name; nil if only one account has one-time passwords.
  /// - Throws: `LockError` if the account is locked; `CommandError` if no single account matches.
  package func accountWithOneTimePasswords(_ name: String?) throws -> AccountRecord {
    let account = try findAccountWithOneTimePasswords(name)
    try requireUnlocked(account)
    return account
  }

  private func findAccountWithOneTimePasswords(_ name: String?) throws -> AccountRecord {
    let having = try vault.accountsWithOneTimePasswords()
    let accounts = try vault.accounts().filter { having.contains($0.id) }
    // An account whose enrollment is not finished has no code to show yet.
    let active = accounts.filter { $0.stage == .active }
    let usable = active.isEmpty ? accounts : active
    if name == nil, usable.count == 1 { return usable[0] }
    guard let account = accounts.first(where: { $0.id.text == name }) else {
      throw CommandError(
        .usage,
        name.map { "account \"\($0)\" has no one-time passwords here; see `approval-token accounts`" }
          ?? (accounts.isEmpty ? "no account has one-time passwords" : CommandError.nameOne(of: usable)))
    }
    return account
  }
}
