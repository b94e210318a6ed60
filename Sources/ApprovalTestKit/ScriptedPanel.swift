public import MobileAuth
import Synchronization

/// A panel without hardware: tells what it was asked to show, and does what the test says a person does.
public final class ScriptedPanel: Panel {
  private struct State {
    var shown: [Indication] = []
    var challenge: AsyncStream<PanelEvent>.Continuation?
    var prompts: [Prompt] = []
    var openRequests: [Int] = []
    var watchers: [(isSatisfied: @Sendable (State) -> Bool, wait: BoundedWait)] = []
  }

  /// So long an option takes to be shown.
  public static let optionLength = Duration.seconds(1)

  public let canType: Bool
  private let timekeeper: (any Timekeeper)?
  private let state = Mutex(State())

  /// - Parameter timekeeper: by whose clock options are shown; without one they take no time.
  public init(canType: Bool = true, timekeeper: (any Timekeeper)? = nil) {
    self.canType = canType
    self.timekeeper = timekeeper
  }

  /// Everything shown so far, in order, without immediate repeats.
  public var shown: [Indication] { state.withLock { $0.shown } }

  /// Everything asked so far, in order.
  public var prompts: [Prompt] { state.withLock { $0.prompts } }

  /// How many requests were open, each time that changed.
  public var openRequests: [Int] { state.withLock { $0.openRequests } }

  public func note(openRequests count: Int) async {
    change { if $0.openRequests.last != count { $0.openRequests.append(count) } }
  }

  /// Ends the prompt without a gesture, as no panel should.
  public func breakPrompt() { state.withLock { $0.challenge?.finish() } }

  public func show(_ indication: Indication) async {
    change { if $0.shown.last != indication { $0.shown.append(indication) } }
    guard case .option = indication, let timekeeper else { return }
    try? await timekeeper.sleep(until: timekeeper.now + Self.optionLength)
  }

  public func events(for prompt: Prompt) -> AsyncStream<PanelEvent> {
    let (stream, continuation) = AsyncStream.makeStream(of: PanelEvent.self)
    change { state in
      state.challenge?.finish()
      state.challenge = continuation
      state.prompts.append(prompt)
    }
    return stream
  }

  /// A person does something. Ignored, as on a real panel, while no challenge is armed.
  public func perform(_ event: PanelEvent) {
    state.withLock { _ = $0.challenge?.yield(event) }
  }

  /// Waits, without time, until this is what the panel shows.
  public func until(showing indication: Indication) async {
    await wait(for: "\(indication) on the panel") { $0.shown.last == indication }
  }

  /// Waits until `count` challenges have been armed in all.
  public func until(challenges count: Int) async {
    await wait(for: "\(count) challenges") { $0.prompts.count >= count }
  }

  private func wait(for what: String, _ isSatisfied: @escaping @Sendable (borrowing State) -> Bool) async {
    await BoundedWait.wait(for: { what }) { wait in
      let already = state.withLock { state in
        if isSatisfied(state) { return true }
        state.watchers.append(({ isSatisfied($0) }, wait))
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
