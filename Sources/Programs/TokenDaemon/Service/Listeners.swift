// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Synchronization

/// The listeners of one round. One that does not end does not keep the others, or the next round, waiting.
final class Listeners: Sendable {
  private let running: Mutex<Set<TokenServerID>>
  private let changes = ChangeSignal()
  private let tasks = Mutex<[Task<Void, Never>]>([])
  private let environment: TokenEnvironment

  /// Starts the listeners.
  init(_ listeners: [RequestListener], in environment: TokenEnvironment) {
    self.environment = environment
    running = Mutex(Set(listeners.map(\.id)))
    for listener in listeners {
      let task = Task { [self] in
        _ = try? await listener.run()
        running.withLock { _ = $0.remove(listener.id) }
        changes.raise()
      }
      tasks.withLock { $0.append(task) }
    }
  }

  func cancel() { for task in tasks.withLock({ $0 }) { task.cancel() } }

  /// Cancels the listeners and waits until they have ended, also in a canceled task.
  /// - Returns: the servers whose listeners have not ended within `limit`.
  func end(within limit: Duration) async -> [TokenServerID] {
    cancel()
    let waiting = Task { [self] in
      let end = environment.now + limit
      while true {
        let generation = changes.generation
        let left = running.withLock { Array($0) }
        guard !left.isEmpty, environment.now < end else { return left }
        try? await changes.wait(beyond: generation, until: end, in: environment)
      }
    }
    return await waiting.value
  }
}
