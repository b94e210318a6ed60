// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

extension AccountOperations {
  /// The account whose one-time passwords are meant.
  /// - Parameter name: the account's name; nil if only one account has one-time passwords.
  /// - Throws: `LockError` if the account is locked; `AccountError` if no single account matches; `StateStoreError`.
  package func accountWithOneTimePasswords(_ name: String?) throws -> AccountRecord {
    let having = try store.accountsWithOneTimePasswords()
    let accounts = try store.accounts().filter { having.contains($0.id) }
    // An account whose enrollment is not finished has no code to show yet.
    let active = accounts.filter { $0.stage == .active }
    let account = try Self.choose(name, of: accounts, preferring: active.isEmpty ? accounts : active)
    try requireUnlocked(account)
    return account
  }

  private static func choose(
    _ name: String?, of accounts: [AccountRecord], preferring usable: [AccountRecord]
  ) throws(AccountError) -> AccountRecord {
    guard let name else {
      guard usable.count == 1 else {
        throw accounts.isEmpty ? .noOneTimePasswords : .nameOne(of: usable.map(\.id))
      }
      return usable[0]
    }
    guard let account = accounts.first(where: { $0.id.text == name }) else { throw .withoutOneTimePasswords(name) }
    return account
  }
}
