public import MobileAuth
import Synchronization

/// Hints by the event stream, the mailbox, or both.
extension ReferenceTokenServer {
  public func hints() -> AsyncThrowingStream<Hint, any Error> {
    // Hints are idempotent: a few unread ones say all that a thousand would.
    AsyncThrowingStream(bufferingPolicy: .bufferingOldest(8)) { continuation in
      let task = Task {
        do {
          try await feedHints { continuation.yield($0) }
          continuation.finish()
        } catch { continuation.finish(throwing: error) }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  /// By the event stream, the mailbox, or both; whatever must not end ends all.
  private func feedHints(_ yield: @escaping @Sendable (Hint) -> Void) async throws {
    let profiles = accounts.withLock { $0.keys.sorted() }
    guard let mailboxFeed, hasBroker.withLock({ $0 }), !profiles.isEmpty else { return try await feed.run(yield) }
    guard !mailboxFeed.broker.replacesEventStream else { try await mailboxFeed.run(profiles, yield) }
    try await withThrowingTaskGroup(of: Void.self) { [feed] group in
      defer { group.cancelAll() }
      group.addTask { try await mailboxFeed.runBeside(profiles, yield) }
      group.addTask { try await feed.run(yield) }
      try await group.next()
    }
  }
}
