// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// The backends of this process, one of each kind, and the operations on accounts of every kind. Commands and the
/// service call them; an operation asks a backend for a capability, never for its type.
package struct AccountOperations: Sendable {
  package let context: BackendContext
  package let backends: [any ServerBackend]

  package init(_ context: BackendContext, kinds: [any ServerBackend.Type]) {
    self.context = context
    backends = kinds.map { $0.init(context) }
  }

  package var kinds: [any ServerBackend.Type] { backends.map { type(of: $0) } }

  var store: any BackendStore { context.store }
  var environment: TokenEnvironment { context.environment }

  /// - Throws: `.corrupt` for a kind that this version does not know.
  package func backend(of server: TokenServerRecord) throws(StateStoreError) -> any ServerBackend {
    guard let backend = backends.first(where: { type(of: $0).kind == server.kind }) else {
      throw .corrupt(.kind(server.kind, server.id))
    }
    return backend
  }

  /// The backend of the account's server.
  /// - Throws: `.corrupt` also if the server is missing: a lock must not disappear with it.
  package func backend(of account: AccountRecord) throws(StateStoreError) -> any ServerBackend {
    try backend(of: try server(of: account))
  }

  /// - Throws: `.corrupt` if the server is missing.
  func server(of account: AccountRecord) throws(StateStoreError) -> TokenServerRecord {
    guard let server = try store.servers().first(where: { $0.id == account.server }) else {
      throw .corrupt(.serverOf(account.id, account.server))
    }
    return server
  }

  /// Makes the client for a server; nil if accounts of its kind have no server.
  /// - Parameter report: called with the client's events.
  package func client(
    for server: TokenServerRecord, report: @escaping @Sendable (TokenEvent) -> Void = { _ in }
  ) throws -> (any TokenServerClient)? {
    let accounts = try store.accounts().filter { $0.server == server.id }
    return try backend(of: server).client(for: server, accounts: accounts, in: environment.reporting(to: report))
  }

  /// The accounts of backends with a capability, each with its backend.
  /// - Parameter capability: casts a backend to the capability's protocol.
  package func accounts<Capability>(
    _ capability: (any ServerBackend) -> Capability?
  ) throws(StateStoreError) -> [(account: AccountRecord, backend: Capability)] {
    var found: [TokenServerID: Capability] = [:]
    for server in try store.servers() { found[server.id] = (try? backend(of: server)).flatMap(capability) }
    return try store.accounts().compactMap { account in found[account.server].map { (account: account, backend: $0) } }
  }

  // MARK: Accounts by name

  /// - Throws: `AccountError.unknown`; `StateStoreError`, `.corrupt` for an account whose record is damaged.
  package func account(_ name: String) throws -> AccountRecord {
    if let account = try store.accounts().first(where: { $0.id.text == name }) { return account }
    do { return try store.account(AccountID(name)) } catch {
      guard case .notFound = error else { throw error }
      throw AccountError.unknown(name)
    }
  }

  /// - Parameter name: nil if there is only one active account.
  /// - Throws: `AccountError`, `StateStoreError`.
  package func activeAccount(_ name: String?) throws -> AccountRecord {
    let active = try store.accounts().filter { $0.stage == .active }
    guard let account = name == nil && active.count == 1 ? active.first : active.first(where: { $0.id.text == name })
    else { throw name.map { AccountError.notActive($0) } ?? .nameOne(of: active.map(\.id)) }
    return account
  }

  /// Renames an account.
  /// - Throws: `AccountError.invalidName`, `LockError` if it is locked; `StateStoreError`.
  package func rename(_ name: String, to newName: String) throws {
    guard isAccountName(newName) else { throw AccountError.invalidName }
    let (old, new) = (AccountID(name), AccountID(newName))
    try requireUnlocked(try store.account(old))
    try store.rename(old, to: new, environment.auditEntry(.renamed, account: new, detail: "was \(name)"))
  }

  /// Renames an account without a name of the user's choice after the user at the server: "ann@example.com".
  /// - Returns: the account as stored.
  package func namedAfterUser(_ account: AccountRecord) throws(StateStoreError) -> AccountRecord {
    guard account.id.text == account.profile, let user = account.displayName else { return account }
    let taken = Set(try store.accounts().map(\.id.text))
    guard let name = accountName(of: user, at: account.server, except: taken) else { return account }
    var named = account
    named.id = AccountID(name)
    try store.rename(
      account.id, to: named.id, environment.auditEntry(.renamed, account: named.id, detail: "was \(account.id)"))
    return named
  }
}

extension [any ServerBackend.Type] {
  /// The names of the kinds of servers that have a capability, for messages.
  package func names(with capability: (any ServerBackend.Type) -> Bool) -> String {
    filter(capability).map { $0.displayName }.enumerated(with: "and")
  }
}

extension [String] {
  /// "a, b and c".
  /// - Parameter conjunction: before the last item.
  package func enumerated(with conjunction: String) -> String {
    guard let last, count > 1 else { return first ?? "" }
    return "\(dropLast().joined(separator: ", ")) \(conjunction) \(last)"
  }
}
