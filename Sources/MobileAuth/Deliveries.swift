import Synchronization

/// Answers on their way, and questions about what became of some, each in a task of its own: one that cannot be delivered
/// holds up nobody but its own server, and a question holds up nothing.
final class Deliveries: Sendable {
  /// How one ended. What had to be written down has been.
  struct Ending: Sendable {
    /// The request is open still, and wants another answer.
    var asksAgain = false
    /// For the LED, one after the other.
    var indications: [Indication] = []
  }

  enum Kind: Sendable {
    case answer
    /// About an answer whose outcome is unknown.
    case question
    /// About a request that ended elsewhere.
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
    var endings: [TransactionID: Result<Ending, CustodyFault>] = [:]
  }

  private let state = Mutex(State())
  private let inbox: Inbox

  /// - Parameter inbox: nudged whenever something here has changed.
  init(inbox: Inbox) { self.inbox = inbox }

  /// - Parameter body: throws `CustodyFault`, or `CancellationError`, after which nothing is known.
  func start(
    _ transaction: TransactionID, to server: TokenServerID, as kind: Kind = .answer,
    _ body: @escaping @Sendable (_ onTrouble: @Sendable () -> Void) async throws -> Ending
  ) {
    state.withLock { state in
      state.endings[transaction] = nil
      state.underway[transaction] = Delivery(server: server, kind: kind)
      state.underway[transaction]?.task = Task { [self] in
        end(transaction, await outcome { try await body { note(troubleOf: transaction) } })
      }
    }
  }

  private func outcome(of body: () async throws -> Ending) async -> Result<Ending, CustodyFault>? {
    do { return .success(try await body()) } catch { return (error as? CustodyFault).map(Result.failure) }
  }

  private func end(_ transaction: TransactionID, _ outcome: Result<Ending, CustodyFault>?) {
    state.withLock { state in
      state.underway[transaction] = nil
      state.endings[transaction] = outcome
    }
    inbox.nudge()
  }

  private func note(troubleOf transaction: TransactionID) {
    state.withLock { $0.underway[transaction]?.isTroubled = true }
    inbox.nudge()
  }

  var underway: Set<TransactionID> { state.withLock { Set($0.underway.keys) } }

  /// The servers that an answer is on its way to.
  var servers: Set<TokenServerID> {
    state.withLock { Set($0.underway.values.filter { $0.kind == .answer }.map(\.server)) }
  }

  /// Whether no answer is on its way or asked about.
  var isEverythingKnown: Bool { state.withLock { $0.underway.values.allSatisfy { $0.kind == .ending } } }

  /// Whether it had to be tried again.
  func isTroubled(_ transaction: TransactionID) -> Bool {
    state.withLock { $0.underway[transaction]?.isTroubled ?? false }
  }

  /// - Returns: nil while it is on its way, and after its ending was taken.
  func takeEnding(of transaction: TransactionID) throws(CustodyFault) -> Ending? {
    try state.withLock { $0.endings.removeValue(forKey: transaction) }?.get()
  }

  /// Of one that nobody has waited for.
  func takeEnding() throws(CustodyFault) -> Ending? {
    try state.withLock { $0.endings.popFirst()?.value }?.get()
  }

  /// Ends all of them where they are; what becomes of their answers is to be asked.
  func cancel() async {
    let tasks = state.withLock { $0.underway.values.compactMap(\.task) }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
