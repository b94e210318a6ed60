// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets
import Synchronization

/// An in-memory state store with injected faults: a chosen write throws and changes nothing. It knows no accounts, so
/// every enrollment is the present one.
package final class MemoryStateStore: StateStore {
  private struct State {
    var audit: [AuditEntry] = []
    var intents: [AnswerIntent] = []
    var wipedAccounts: [AccountID] = []
    var wipedServers: [TokenServerID] = []
    var droppedKeys: [AccountID] = []
    var failures: [Int: StateStoreError] = [:]
    var removalFailure: StateStoreError?
    var writes = 0
    var deferred: [DeferredChange] = []

    mutating func apply(_ change: DeferredChange) {
      switch change {
      case .record(let entry): audit.append(entry)
      case .resolveIntent(let transaction, let entry):
        intents.removeAll { $0.transaction == transaction }
        audit.append(entry)
      }
    }

    /// With the deferred changes.
    var newest: State {
      var state = self
      for change in deferred { state.apply(change) }
      return state
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// All entries, including those that are not durable.
  package var audit: [AuditEntry] { state.withLock { $0.newest.audit } }
  package var durableAudit: [AuditEntry] { state.withLock { $0.audit } }
  package var durableIntents: [AnswerIntent] { state.withLock { $0.intents } }
  /// The number of durable changes so far, including failed ones.
  package var writes: Int { state.withLock { $0.writes } }
  package var wipedAccounts: [AccountID] { state.withLock { $0.wipedAccounts } }
  package var wipedServers: [TokenServerID] { state.withLock { $0.wipedServers } }
  package var droppedKeys: [AccountID] { state.withLock { $0.droppedKeys } }

  /// The details of the `settled` audit entries of a transaction.
  package func outcomes(of transaction: TransactionID) -> [String] {
    audit.filter { [.settled, .unconfirmed].contains($0.kind) && $0.transaction == transaction }.map(\.detail)
  }

  /// Lets the next removal of an account, its keys or a server throw this fault.
  package func failRemoval(with fault: StateStoreError) { state.withLock { $0.removalFailure = fault } }

  /// - Parameter number: 1 for the next write.
  package func fail(write number: Int, with fault: StateStoreError) {
    state.withLock { $0.failures[$0.writes + number] = fault }
  }

  package func plant(_ intent: AnswerIntent) { state.withLock { $0.intents.append(intent) } }

  package func enqueue(_ change: DeferredChange) { state.withLock { $0.deferred.append(change) } }

  package var queueLength: Int { state.withLock { $0.deferred.count } }

  package func flush() throws(StateStoreError) {
    guard state.withLock({ !$0.deferred.isEmpty }) else { return }
    try write { _ in }
  }

  package func record(_ entry: AuditEntry) throws(StateStoreError) {
    try write { $0.audit.append(entry) }
  }

  package func journal(_ intent: AnswerIntent, _ entry: AuditEntry) throws(StateStoreError) {
    try write { state in
      state.intents.removeAll { $0.transaction == intent.transaction }
      state.intents.append(intent)
      state.audit.append(entry)
    }
  }

  package func resolveIntent(_ transaction: TransactionID, _ entry: AuditEntry) throws(StateStoreError) {
    try write { state in
      state.intents.removeAll { $0.transaction == transaction }
      state.audit.append(entry)
    }
  }

  package func unresolvedIntents() throws(StateStoreError) -> [AnswerIntent] { state.withLock { $0.newest.intents } }

  package func dropKeys(
    of account: AccountID, if enrollment: EnrollmentID?, keeping remainder: SecretBytes?, _ entry: AuditEntry
  ) throws(StateStoreError) {
    try remove { state in
      state.droppedKeys.append(account)
      state.audit.append(entry)
    }
  }

  package func wipe(account: AccountID, if enrollment: EnrollmentID?, _ entry: AuditEntry) throws(StateStoreError) {
    try remove { state in
      state.wipedAccounts.append(account)
      state.audit.append(entry)
    }
  }

  package func wipe(server: TokenServerID, if registration: EnrollmentID?, _ entry: AuditEntry) throws(StateStoreError)
  {
    try remove { state in
      state.wipedServers.append(server)
      state.audit.append(entry)
    }
  }

  private func remove(_ body: (inout State) -> Void) throws(StateStoreError) {
    if let fault = state.withLock({ $0.removalFailure.take() }) { throw fault }
    try write(body)
  }

  private func write(_ body: (inout State) -> Void) throws(StateStoreError) {
    let fault = state.withLock { state in
      state.writes += 1
      let fault = state.failures.removeValue(forKey: state.writes)
      if fault == nil {
        for change in state.deferred { state.apply(change) }
        state.deferred = []
        body(&state)
      }
      return fault
    }
    if let fault { throw fault }
  }
}
