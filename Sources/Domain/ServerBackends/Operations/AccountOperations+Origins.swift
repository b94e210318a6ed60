// SPDX-License-Identifier: Apache-2.0
package import HTTP
package import MobileAuth

/// The allow-list of an account: the origins of the resource servers that may receive the user's access token.
extension AccountOperations {
  /// Checks that an origin is not the account's token server. There, a user access token could replace the account's
  /// keys.
  /// - Throws: `AccountError.originOfTokenServer`, `StateStoreError`.
  package func requireResourceServer(_ origin: HTTPOrigin, for account: AccountRecord) throws {
    let url = try server(of: account).url
    guard !url.hasPrefix("https://") || HTTPOrigin(url).map({ $0 != origin }) == true else {
      throw AccountError.originOfTokenServer("\(origin)", account.id)
    }
  }

  /// Checks that an origin can be added to the allow-list.
  /// - Returns: false if it is on the list already.
  /// - Throws: `AccountError.tooManyOrigins`, and as `requireResourceServer`.
  package func canAllow(_ origin: HTTPOrigin, for account: AccountRecord) throws -> Bool {
    try requireResourceServer(origin, for: account)
    guard !account.allowedOrigins.contains(origin.text) else { return false }
    guard account.allowedOrigins.count < AccountRecord.mostOrigins else {
      throw AccountError.tooManyOrigins(account.id)
    }
    return true
  }

  /// Adds an origin to the allow-list. Does nothing if it is on the list.
  /// - Parameter account: the account before the user confirmed the origin.
  /// - Returns: the changed account, and the entry in the audit chain; nil if nothing was changed.
  /// - Throws: `.conflict` if the account has changed since it was read; as `canAllow`.
  package func allow(
    _ origin: HTTPOrigin, for account: AccountRecord
  ) throws -> (account: AccountRecord, entry: AuditEntry)? {
    guard try canAllow(origin, for: account) else { return nil }
    return try change(account, "allowed \(origin)") { $0.append(origin.text) }
  }

  /// Removes an origin from the allow-list. Does nothing if it is not on the list.
  /// - Returns: the changed account, and the entry in the audit chain; nil if nothing was changed.
  /// - Throws: `.conflict` if the account has changed since it was read; `StateStoreError`.
  package func disallow(
    _ origin: HTTPOrigin, for account: AccountRecord
  ) throws(StateStoreError) -> (account: AccountRecord, entry: AuditEntry)? {
    guard account.allowedOrigins.contains(origin.text) else { return nil }
    return try change(account, "no longer allowed: \(origin)") { $0.removeAll { $0 == origin.text } }
  }

  private func change(
    _ account: AccountRecord, _ detail: String, _ body: (inout [String]) -> Void
  ) throws(StateStoreError) -> (account: AccountRecord, entry: AuditEntry) {
    var changed = account
    body(&changed.allowedOrigins)
    let entry = environment.auditEntry(.originsChanged, account: account.id, detail: detail)
    guard try store.change(account, .put(changed, entry)) else {
      throw .conflict(.account(account.id), .changedMeanwhile)
    }
    return (changed, entry)
  }
}
