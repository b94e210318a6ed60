// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Synchronization

/// The unresolved intents, as they were last read: the handler needs them at each step, also while a commit is written.
final class KnownIntents: Sendable {
  private struct State {
    /// The number of changes of the vault.
    var changes = 0
    var intents: [AnswerIntent]?
  }

  private let state = Mutex(State())

  /// To be called after each change of the vault.
  func forget() {
    state.withLock { state in
      state.changes &+= 1
      state.intents = nil
    }
  }

  /// Returns what is known, or what `read` returns.
  func value(orReading read: () throws(StateStoreError) -> [AnswerIntent]) throws(StateStoreError) -> [AnswerIntent] {
    let (changes, known) = state.withLock { ($0.changes, $0.intents) }
    if let known { return known }
    let intents = try read()
    // What was read before a change may be from before it.
    state.withLock { state in if state.changes == changes { state.intents = intents } }
    return intents
  }
}
