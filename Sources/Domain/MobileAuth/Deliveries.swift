// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Answers being sent and status queries, each in its own task. An answer that cannot be delivered blocks only its own
/// server; a status query blocks nothing.
final class Deliveries: Sendable {
  /// The result of one task. Its audit entries are written.
  struct Outcome: Sendable {
    /// Whether the request is still open and needs another answer.
    var asksAgain = false
    /// Indications for the LED, in order.
    var indications: [Indication] = []
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
    var isTroubled = false
    var task: Task<Void, Never>?
  }

  private struct State {
    var underway: [TransactionID: Delivery] = [:]
    var outcomes: [TransactionID: Result<Outcome, StateStoreError>] = [:]
  }

  private let state = Mutex(State())
  private let inbox: Inbox

  /// - Parameter inbox: notified of every change of these tasks.
  init(inbox: Inbox) { self.inbox = inbox }

  /// Starts a task, replacing an ending of the same transaction.
  /// - Parameter body: throws `StateStoreError`, or `CancellationError`, after which the outcome is unknown.
  func start(
    _ transaction: TransactionID, to server: TokenServerID, as kind: Kind = .answer,
    _ body: @escaping @Sendable (_ onTrouble: @Sendable () -> Void) async throws -> Outcome
  ) {
    state.withLock { state in
      state.outcomes[transaction] = nil
      state.underway[transaction] = Delivery(server: server, kind: kind)
      state.underway[transaction]?.task = Task { [self] in
        end(transaction, await outcome { try await body { note(troubleOf: transaction) } })
      }
    }
  }

  private func outcome(of body: () async throws -> Outcome) async -> Result<Outcome, StateStoreError>? {
    do { return .success(try await body()) } catch { return (error as? StateStoreError).map(Result.failure) }
  }

  private func end(_ transaction: TransactionID, _ outcome: Result<Outcome, StateStoreError>?) {
    state.withLock { state in
      state.underway[transaction] = nil
      state.outcomes[transaction] = outcome
    }
    inbox.notifyWaiters()
  }

  private func note(troubleOf transaction: TransactionID) {
    state.withLock { $0.underway[transaction]?.isTroubled = true }
    inbox.notifyWaiters()
  }

  var underway: Set<TransactionID> { state.withLock { Set($0.underway.keys) } }

  /// The servers to which an answer is being sent.
  var servers: Set<TokenServerID> {
    state.withLock { Set($0.underway.values.filter { $0.kind == .answer }.map(\.server)) }
  }

  /// Whether no answer is being sent and no outcome is being queried.
  var isEverythingKnown: Bool { state.withLock { $0.underway.values.allSatisfy { $0.kind == .ending } } }

  /// Whether the task had to retry.
  func isTroubled(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.underway[transaction]?.isTroubled ?? false }
  }

  /// - Returns: the ending; nil while the task runs and after the ending was taken.
  func takeOutcome(of transaction: TransactionID) throws(StateStoreError) -> Outcome? {
    try state.withLock { $0.outcomes.removeValue(forKey: transaction) }?.get()
  }

  /// Returns the ending of any task that no caller waits for.
  func takeOutcome() throws(StateStoreError) -> Outcome? {
    try state.withLock { $0.outcomes.popFirst()?.value }?.get()
  }

  /// Cancels all tasks and waits for them. The outcomes of their answers are queried later.
  func cancel() async {
    let tasks = state.withLock { $0.underway.values.compactMap(\.task) }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
