// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Answers being sent and status queries, each in its own task. An answer that cannot be delivered blocks only its own
/// server; a status query blocks nothing.
final class Deliveries: Sendable {
  /// The result of a delivery. The audit entries of its end are written.
  enum Outcome: Sendable {
    /// The panel is free for other requests; the delivery continues in the background.
    case stillUnderway
    /// The answer did not count: the request is still open and needs another answer.
    /// - Parameters:
    ///   - shows: the indication for the LED.
    ///   - after: why it did not count.
    case retryEntry(shows: Indication, after: TokenServerError)
    /// - Parameter shows: indications for the LED, in order.
    case finished(shows: [Indication])

    var indications: [Indication] {
      switch self {
      case .stillUnderway: []
      case .retryEntry(let indication, _): [indication]
      case .finished(let shows): shows
      }
    }
  }

  enum Kind: Sendable {
    case answer
    /// A query about an answer whose outcome is unknown.
    case question
    /// A query about a request that ended elsewhere.
    case ending
  }

  private struct Delivery: Sendable {
    let server: TokenServerID
    let kind: Kind
    /// Raised when the delivery has trouble or ends.
    let changes = ChangeSignal()
    var isTroubled = false
    var task: Task<Void, Never>?
  }

  private struct State {
    var underway: [TransactionID: Delivery] = [:]
    /// Outcomes of tasks that ended in the background, until the loop takes them: shown when they arrive, they would
    /// be mistaken for the outcome of the request on the panel.
    var outcomes: [TransactionID: Result<Outcome, StateStoreError>] = [:]
  }

  private let state = Mutex(State())
  private let changes: ChangeSignal
  private let environment: TokenEnvironment
  private let afterwards: @Sendable () -> Void

  /// - Parameters:
  ///   - changes: raised when a task ends or has trouble.
  ///   - afterwards: called after the end of each task: what its outcome does not wait for.
  init(changes: ChangeSignal, in environment: TokenEnvironment, afterwards: @escaping @Sendable () -> Void) {
    self.changes = changes
    self.environment = environment
    self.afterwards = afterwards
  }

  /// Starts a task in the background, replacing an outcome of the same transaction.
  /// - Parameter body: throws `StateStoreError`, or `CancellationError`, after which the outcome is unknown.
  func start(
    _ transaction: TransactionID, to server: TokenServerID, as kind: Kind,
    _ body: @escaping @Sendable (_ onTrouble: @Sendable () -> Void) async throws -> Outcome
  ) {
    state.withLock { state in
      state.outcomes[transaction] = nil
      state.underway[transaction] = Delivery(server: server, kind: kind)
      state.underway[transaction]?.task = Task { [self] in
        end(transaction, await outcome { try await body { note(troubleOf: transaction) } })
        await Task.yield()
        afterwards()
      }
    }
  }

  /// Starts to send an answer, and waits for its outcome until `limit`.
  /// - Parameter onTrouble: called when the delivery has to be retried.
  /// - Throws: `StateStoreError` of `body`; `CancellationError`, after which the delivery continues.
  func deliver(
    _ transaction: TransactionID, to server: TokenServerID, until limit: MonotonicInstant,
    onTrouble: () async -> Void,
    _ body: @escaping @Sendable (_ onTrouble: @Sendable () -> Void) async throws -> Outcome
  ) async throws -> Outcome {
    start(transaction, to: server, as: .answer, body)
    while true {
      let delivery = state.withLock { $0.underway[transaction] }
      let generation = delivery?.changes.generation ?? 0
      if let outcome = try takeOutcome(of: transaction) { return outcome }
      // A canceled delivery has no outcome.
      guard let delivery, environment.now < limit else { return .stillUnderway }
      if isTroubled(transaction) { await onTrouble() }
      try await delivery.changes.wait(beyond: generation, until: limit, in: environment)
    }
  }

  private func outcome(of body: () async throws -> Outcome) async -> Result<Outcome, StateStoreError>? {
    do { return .success(try await body()) } catch { return (error as? StateStoreError).map(Result.failure) }
  }

  private func end(_ transaction: TransactionID, _ outcome: Result<Outcome, StateStoreError>?) {
    let ended = state.withLock { state in
      state.outcomes[transaction] = outcome
      return state.underway.removeValue(forKey: transaction)
    }
    ended?.changes.raise()
    changes.raise()
  }

  private func note(troubleOf transaction: TransactionID) {
    let troubled = state.withLock { state in
      state.underway[transaction]?.isTroubled = true
      return state.underway[transaction]
    }
    troubled?.changes.raise()
    changes.raise()
  }

  var underway: Set<TransactionID> { state.withLock { Set($0.underway.keys) } }

  /// The servers to which an answer is being sent.
  var servers: Set<TokenServerID> {
    state.withLock { Set($0.underway.values.filter { $0.kind == .answer }.map(\.server)) }
  }

  /// Whether no answer is being sent and no outcome is being queried.
  var isEverythingKnown: Bool { state.withLock { $0.underway.values.allSatisfy { $0.kind == .ending } } }

  private func isTroubled(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.underway[transaction]?.isTroubled ?? false }
  }

  private func takeOutcome(of transaction: TransactionID) throws(StateStoreError) -> Outcome? {
    try state.withLock { $0.outcomes.removeValue(forKey: transaction) }?.get()
  }

  /// Returns the indications of a task that ended in the background, for a panel that is free.
  func takeIndications() throws(StateStoreError) -> [Indication]? {
    try state.withLock { $0.outcomes.popFirst()?.value }?.get().indications
  }

  /// Whether a task ended in the background whose indications were not taken.
  var hasOutcomes: Bool { state.withLock { !$0.outcomes.isEmpty } }

  /// Discards the outcomes of tasks that ended in the background. They are in the audit log.
  /// - Parameter kept: whose outcome is not discarded; nil for none.
  func discardOutcomes(except kept: TransactionID?) throws(StateStoreError) {
    let others = state.withLock { state in
      let others = state.outcomes.filter { $0.key != kept }
      state.outcomes = state.outcomes.filter { $0.key == kept }
      return others
    }
    for outcome in others.values { _ = try outcome.get() }
  }

  /// Cancels all tasks and waits for them. The outcomes of their answers are queried later.
  func cancel() async {
    let tasks = state.withLock { $0.underway.values.compactMap(\.task) }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
