// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import Synchronization

/// A panel without hardware. It records what it is asked to show and performs the user actions that the test sets.
package final class ScriptedPanel: Panel {
  private struct State {
    var shown: [Indication] = []
    var challenge: AsyncStream<PanelEvent>.Continuation?
    var prompts: [Prompt] = []
    var openRequests: [Int] = []
    /// The indications from this index on follow the last action.
    var actedAt = 0
    var watchers: [(isSatisfied: @Sendable (borrowing State) -> Bool, wait: BoundedWait)] = []
  }

  /// How long an option is shown.
  package static let optionLength = Duration.seconds(1)

  package let canType: Bool
  private let clock: (any TokenClock)?
  private let state = Mutex(State())

  /// - Parameter clock: the clock for the display time of options. Without it, options take no time.
  package init(canType: Bool = true, clock: (any TokenClock)? = nil) {
    self.canType = canType
    self.clock = clock
  }

  /// All indications shown so far, in order, without immediate repeats.
  package var shown: [Indication] { state.withLock { $0.shown } }

  /// All prompts so far, in order.
  package var prompts: [Prompt] { state.withLock { $0.prompts } }

  /// The numbers of open requests that were set, without immediate repeats.
  package var openRequests: [Int] { state.withLock { $0.openRequests } }

  package func note(openRequests count: Int) async {
    change { if $0.openRequests.last != count { $0.openRequests.append(count) } }
  }

  /// Ends the prompt without a gesture. A real panel does so only after `.lit`.
  package func breakPrompt() { state.withLock { $0.challenge?.finish() } }

  package func show(_ indication: Indication) async {
    change { if $0.shown.last != indication { $0.shown.append(indication) } }
    guard case .option = indication, let clock else { return }
    try? await clock.sleep(until: clock.now + Self.optionLength)
  }

  package func events(for prompt: Prompt) -> AsyncStream<PanelEvent> {
    let (stream, continuation) = AsyncStream.makeStream(of: PanelEvent.self)
    change { state in
      state.challenge?.finish()
      state.challenge = continuation
      state.prompts.append(prompt)
    }
    return stream
  }

  /// Performs a user action. Ignored while no prompt is armed, as on a real panel.
  package func perform(_ event: PanelEvent) {
    state.withLock { state in
      state.actedAt = state.shown.count
      state.challenge?.yield(event)
    }
  }

  /// Waits, without advancing the clock, until the panel shows `indication`.
  package func until(showing indication: Indication) async {
    await wait(for: "\(indication) on the panel") { $0.shown.last == indication }
  }

  /// Waits, without advancing the clock, until the panel has shown `indication` since the last action. For one that is
  /// shown shortly: the handler may have gone on before the test waits.
  package func until(shown indication: Indication) async {
    await wait(for: "\(indication) on the panel") { $0.shown[$0.actedAt...].contains(indication) }
  }

  /// Waits until `count` prompts have been armed since the beginning.
  package func until(challenges count: Int) async {
    await wait(for: "\(count) challenges") { $0.prompts.count >= count }
  }

  private func wait(for what: String, _ isSatisfied: @escaping @Sendable (borrowing State) -> Bool) async {
    await BoundedWait.wait(for: { what }) { wait in
      let already = state.withLock { state in
        if isSatisfied(state) { return true }
        state.watchers.append((isSatisfied, wait))
        return false
      }
      if already { wait.resume() }
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let satisfied = state.withLock { state in
      body(&state)
      var satisfied: [BoundedWait] = []
      var waiting = state.watchers
      waiting.removeAll { watcher in
        guard watcher.isSatisfied(state) else { return false }
        satisfied.append(watcher.wait)
        return true
      }
      state.watchers = waiting
      return satisfied
    }
    for wait in satisfied { wait.resume() }
  }
}
