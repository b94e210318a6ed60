// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import MobileAuth
import PINProtection
import Secrets
import ServerBackends
import Synchronization

/// The token's storage in memory, without encryption.
final class MemoryStore: BackendStore {
  struct StoredPIN: Sendable {
    var pin: PIN
    var limit: Int
    var failures = 0
  }

  private struct State {
    var pins: [AccountID: StoredPIN] = [:]
    var messages: [DeliveredMessage] = []
    var withOneTimePasswords: Set<AccountID> = []
    var isTamperedWith = false
    /// Run once, before the next change of an account.
    var contest: (@Sendable () throws -> Void)?
    /// The waits before the next attempts with a PIN.
    var waits: [Duration] = []
    var flushes = 0
  }

  let registry = MemoryRegistry()
  let pinBinding = SecretBytes(copying: [1])
  private let state = Mutex(State())

  var audit: [AuditEntry] { registry.audit }
  /// The details of the entries of a kind.
  func details(of kind: AuditEntry.Kind) -> [String] { audit.filter { $0.kind == kind }.map(\.detail) }

  func add(_ messages: [DeliveredMessage]) { state.withLock { $0.messages += messages } }
  func giveOneTimePasswords(to account: AccountID) { state.withLock { _ = $0.withOneTimePasswords.insert(account) } }
  func tamper(_ isTamperedWith: Bool = true) { state.withLock { $0.isTamperedWith = isTamperedWith } }
  func wait(_ duration: Duration) { state.withLock { $0.waits.append(duration) } }
  func contest(_ body: @escaping @Sendable () throws -> Void) { state.withLock { $0.contest = body } }
  var flushes: Int { state.withLock { $0.flushes } }
  func pin(of account: AccountID) -> PIN? { state.withLock { $0.pins[account]?.pin } }

  // MARK: BackendStore

  var isTamperedWith: Bool { state.withLock { $0.isTamperedWith } }
  func latestKnownTime(of server: TokenServerID) throws(StateStoreError) -> Int64 { 0 }

  func account(_ id: AccountID) throws(StateStoreError) -> AccountRecord {
    guard let account = try registry.accounts().first(where: { $0.id == id }) else { throw .notFound(.account(id)) }
    return account
  }

  func rename(_ old: AccountID, to new: AccountID, _ entry: AuditEntry) throws(StateStoreError) {
    var account = try account(old)
    guard try !registry.accounts().contains(where: { $0.id == new }) else { throw .conflict(.account(new), .nameTaken) }
    account.id = new
    try registry.wipe(account: old, if: nil, entry)
    try registry.put(account, nil)
  }

  func messages(of account: AccountID) throws(StateStoreError) -> [DeliveredMessage] {
    state.withLock { $0.messages.filter { $0.account == account }.reversed() }
  }

  func failureCounts(of account: AccountID, in environment: TokenEnvironment) throws(StateStoreError) -> FailureCounts?
  {
    state.withLock { $0.pins[account].map { FailureCounts(max: $0.limit, previous: $0.failures) } }
  }

  func unlock(
    _ account: AccountID, with pin: PIN, in environment: TokenEnvironment
  ) throws(StateStoreError) -> PINUnlockResult {
    let result: PINUnlockResult? = state.withLock { state in
      if !state.waits.isEmpty { return .mustWait(state.waits.removeFirst()) }
      guard var stored = state.pins[account] else { return nil }
      stored.failures = stored.pin == pin ? 0 : stored.failures + 1
      let isWiped = stored.failures >= stored.limit
      state.pins[account] = isWiped ? nil : stored
      let counts = FailureCounts(max: stored.limit, previous: stored.failures)
      if isWiped { return .wiped }
      return stored.failures == 0 ? .unlocked(SecretBytes(copying: [7])) : .wrong(counts, wait: .zero)
    }
    guard let result else { throw .notFound(.pin(of: account)) }
    if case .wiped = result {
      try registry.wipe(account: account, if: nil, environment.auditEntry(.wiped, account: account))
    }
    return result
  }

  func changePIN(
    of account: AccountID, from old: PIN, to new: PIN, parameters: Scrypt.Parameters, in environment: TokenEnvironment
  ) throws(StateStoreError) -> PINUnlockResult {
    let result = try unlock(account, with: old, in: environment)
    if case .unlocked = result { _ = state.withLock { $0.pins[account]?.pin = new } }
    return result
  }

  func setPIN(
    of account: AccountID, to pin: PIN, keys: SecretBytes, limit: Int, parameters: Scrypt.Parameters,
    in environment: TokenEnvironment
  ) throws(StateStoreError) {
    state.withLock { $0.pins[account] = StoredPIN(pin: pin, limit: limit) }
    try registry.record(environment.auditEntry(.pinSet, account: account))
  }

  func accountsWithOneTimePasswords() throws(StateStoreError) -> Set<AccountID> {
    state.withLock { $0.withOneTimePasswords }
  }

  func store(
    _ credential: OATHCredential, of account: AccountRecord, at server: TokenServerRecord, under pin: PINSetting?,
    replacing known: AccountRecord?, _ entry: AuditEntry?
  ) throws(StateStoreError) {
    try registry.put(account, entry)
    giveOneTimePasswords(to: account.id)
  }

  func dropOneTimePasswords(of account: AccountID) throws(StateStoreError) {
    state.withLock { _ = $0.withOneTimePasswords.remove(account) }
  }

  // MARK: Accounts and answers, as in the registry

  func servers() throws(StateStoreError) -> [TokenServerRecord] { try registry.servers() }
  func accounts() throws(StateStoreError) -> [AccountRecord] { try registry.accounts() }
  func put(_ server: TokenServerRecord) throws(StateStoreError) { try registry.put(server) }
  func put(_ account: AccountRecord, _ entry: AuditEntry?) throws(StateStoreError) { try registry.put(account, entry) }
  func change(_ known: AccountRecord, _ change: AccountChange) throws(StateStoreError) -> Bool {
    let contest = state.withLock { $0.contest.take() }
    try? contest?()
    return try registry.change(known, change)
  }
  func record(_ entry: AuditEntry) throws(StateStoreError) { try registry.record(entry) }
  func enqueue(_ change: DeferredChange) { registry.enqueue(change) }
  var queueLength: Int { registry.queueLength }
  func flush() throws(StateStoreError) { state.withLock { $0.flushes += 1 } }
  func journal(_ intent: AnswerIntent, _ entry: AuditEntry) throws(StateStoreError) {
    try registry.journal(intent, entry)
  }
  func resolveIntent(_ transaction: TransactionID, _ entry: AuditEntry) throws(StateStoreError) {
    try registry.resolveIntent(transaction, entry)
  }
  func unresolvedIntents() throws(StateStoreError) -> [AnswerIntent] { [] }
  func dropKeys(
    of account: AccountID, if enrollment: EnrollmentID?, keeping remainder: SecretBytes?, _ entry: AuditEntry
  ) throws(StateStoreError) {
    try registry.dropKeys(of: account, if: enrollment, keeping: remainder, entry)
  }
  func wipe(account: AccountID, if enrollment: EnrollmentID?, _ entry: AuditEntry) throws(StateStoreError) {
    try registry.wipe(account: account, if: enrollment, entry)
  }
  func wipe(server: TokenServerID, if registration: EnrollmentID?, _ entry: AuditEntry) throws(StateStoreError) {
    try registry.wipe(server: server, if: registration, entry)
  }

  // MARK: Messages

  func store(_ message: DeliveredMessage, whenReadable: () -> Void) throws(StateStoreError) -> Bool {
    add([message])
    whenReadable()
    return true
  }
  func message(_ transaction: TransactionID) throws(StateStoreError) -> DeliveredMessage? {
    state.withLock { $0.messages.first { $0.transaction == transaction } }
  }
  func pendingMessages() throws(StateStoreError) -> [DeliveredMessage] {
    state.withLock { $0.messages.filter { $0.state == .pending } }
  }
  func end(_ transaction: TransactionID, as end: DeliveredMessage.State, answerKey: String?) {}
}
