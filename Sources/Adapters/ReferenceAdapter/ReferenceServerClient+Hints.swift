// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import ServerBackends
import Synchronization

/// Hints by the event stream, the MQTT mailbox, or both.
extension ReferenceServerClient {
  package func hints() -> AsyncThrowingStream<Hint, any Error> {
    // Hints are idempotent: a few buffered ones are equivalent to any number.
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

  /// Runs the event stream, the mailbox or both, and the timer of second queries. The end of any of them that is
  /// required ends all.
  private func feedHints(_ yield: @escaping @Sendable (Hint) -> Void) async throws {
    let profiles = accounts.withLock { $0.keys.sorted() }
    try await withThrowingTaskGroup(of: Void.self) { [feed, revocations] group in
      defer { group.cancelAll() }
      group.addTask { try await revocations.watch { yield(.revoked) } }
      let mailbox = hasBroker.withLock { $0 } && !profiles.isEmpty ? brokerFeed : nil
      let replacesEventStream = mailbox?.broker.replacesEventStream == true
      if let mailbox {
        group.addTask {
          if replacesEventStream { try await mailbox.run(profiles, yield) }
          try await mailbox.runBeside(profiles, yield)
        }
      }
      if !replacesEventStream { group.addTask { try await feed.run(yield) } }
      try await group.next()
    }
  }
}
