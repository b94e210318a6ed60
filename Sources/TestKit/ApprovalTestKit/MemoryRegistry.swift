// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets
import Synchronization

/// An in-memory enrollment registry and state store that simulates a power loss at a chosen write.
package final class MemoryRegistry: SharedEnrollmentRegistry, StateStore {
  private struct State {
    var servers: [TokenServerID: TokenServerRecord] = [:]
    var accounts: [AccountID: AccountRecord] = [:]
    package init() {}

    package var audit: [AuditEntry] = []
    var writesLeft: Int?
    var meanwhile: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// Lets the next `writes` writes succeed and every later one fail; nil removes the limit.
  package func failWrites(after writes: Int?) { state.withLock { $0.writesLeft = writes } }

  /// Runs `change` once, after the next read of the accounts: what another process does before the reader writes.
  package func afterNextRead(_ change: @escaping @Sendable () -> Void) { state.withLock { $0.meanwhile = change } }

  package init() {}

  package var audit: [AuditEntry] { state.withLock { $0.audit } }

  private func write(_ entry: AuditEntry?, _ body: (inout State) -> Void) throws(StateStoreError) {
    let isTruncated = state.withLock { state in
      if let left = state.writesLeft {
        guard left > 0 else { return true }
        state.writesLeft = left - 1
      }
      if let entry { state.audit.append(entry) }
      body(&state)
      return false
    }
    if isTruncated { throw .io(call: "write", reason: "the power is gone") }
  }

  package func servers() throws(StateStoreError) -> [TokenServerRecord] { state.withLock { Array($0.servers.values) } }
  package func accounts() throws(StateStoreError) -> [AccountRecord] {
    let (accounts, meanwhile) = state.withLock { state in
      (state.accounts.values.sorted { $0.id.text < $1.id.text }, state.meanwhile.take())
    }
    meanwhile?()
    return accounts
  }
  package func put(_ server: TokenServerRecord) throws(StateStoreError) {
    try write(nil) { $0.servers[server.id] = server }
  }
  package func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(StateStoreError) {
    try write(entry) { $0.accounts[account.id] = account }
  }
  /// Compare-and-swap update of an account. Not safe for concurrent calls.
  package func change(_ known: AccountRecord, _ change: AccountChange) throws(StateStoreError) -> Bool {
    guard state.withLock({ $0.accounts[known.id]?.isSame(as: known) == true }) else { return false }
    switch change {
    case .put(let account, let entry): try put(account, entry)
    case .dropKeys(let entry): try dropKeys(of: known.id, entry)
    case .wipe(let entry): try wipe(account: known.id, entry)
    }
    return true
  }
  private func require(_ enrollment: EnrollmentID?, of account: AccountID) throws(StateStoreError) {
    guard let enrollment, let kept = state.withLock({ $0.accounts[account] }) else { return }
    guard kept.enrollment == enrollment else { throw .conflict(.account(account), .enrolledAgain) }
  }

  package func record(_ entry: AuditEntry) throws(StateStoreError) { try write(entry) { _ in } }
  /// Applied at once, and not counted as a write.
  package func enqueue(_ change: DeferredChange) {
    switch change {
    case .record(let entry), .resolveIntent(_, let entry): state.withLock { $0.audit.append(entry) }
    }
  }
  package var queueLength: Int { 0 }
  package func flush() throws(StateStoreError) {}
  package func journal(_ intent: AnswerIntent, _ entry: AuditEntry) throws(StateStoreError) {
    try write(entry) { _ in }
  }
  package func resolveIntent(_ transaction: TransactionID, _ entry: AuditEntry) throws(StateStoreError) {
    try write(entry) { _ in }
  }
  package func unresolvedIntents() throws(StateStoreError) -> [AnswerIntent] { [] }
  package func dropKeys(
    of account: AccountID, if enrollment: EnrollmentID?, keeping remainder: SecretBytes?, _ entry: AuditEntry
  ) throws(StateStoreError) {
    try require(enrollment, of: account)
    try write(entry) { state in
      guard let kept = state.accounts[account] else { return }
      state.accounts[account] = AccountRecord(
        id: account, server: kept.server, profile: kept.profile, stage: .mustEnrollAgain, enrollment: kept.enrollment,
        secrets: remainder ?? .init(copying: []))
      if remainder != nil { state.accounts[account]?.pin = kept.pin }
    }
  }
  package func wipe(account: AccountID, if enrollment: EnrollmentID?, _ entry: AuditEntry) throws(StateStoreError) {
    try require(enrollment, of: account)
    try write(entry) { $0.accounts[account] = nil }
  }
  package func wipe(
    server: TokenServerID, if registration: EnrollmentID?, _ entry: AuditEntry
  ) throws(StateStoreError) {
    if let registration, let kept = state.withLock({ $0.servers[server] }), kept.registration != registration {
      throw .conflict(.server(server), .enrolledAgain)
    }
    try write(entry) { state in
      state.servers[server] = nil
      state.accounts = state.accounts.filter { $0.value.server != server }
    }
  }
}
