public import FrontPanel
public import MobileAuth
import Synchronization

/// A simulated button: edges are made by whoever holds this object.
public final class SimulatedButton: Button {
  public let events: AsyncStream<ButtonEvent>
  private let continuation: AsyncStream<ButtonEvent>.Continuation
  private let timekeeper: any Timekeeper

  public init(timekeeper: any Timekeeper) {
    self.timekeeper = timekeeper
    (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(64))
  }

  /// Presses, keeps the button down for `duration`, and releases, also when the task is cancelled meanwhile.
  public func hold(for duration: Duration) async {
    continuation.yield(.down(timekeeper.now))
    try? await timekeeper.sleep(until: timekeeper.now + duration)
    continuation.yield(.up(timekeeper.now))
  }

  /// Two short presses, 200 ms apart.
  public func doublePress() async {
    await hold(for: .milliseconds(100))
    try? await timekeeper.sleep(until: timekeeper.now + .milliseconds(100))
    await hold(for: .milliseconds(100))
  }
}

/// A simulated LED: remembers its colour and tells those who watch.
public final class SimulatedIndicator: Indicator {
  private struct State {
    var colour: LEDColour?
    var watchers: [Int: AsyncStream<LEDColour?>.Continuation] = [:]
    var nextWatcher = 0
  }

  private let state = Mutex(State())

  public init() {}

  public var colour: LEDColour? { state.withLock { $0.colour } }

  public func light(_ colour: LEDColour?) {
    state.withLock { state in
      guard state.colour != colour else { return }
      state.colour = colour
      for watcher in state.watchers.values { watcher.yield(colour) }
    }
  }

  /// The colour now, and every change from here on. A watcher who does not keep up misses the oldest.
  public func changes() -> AsyncStream<LEDColour?> {
    AsyncStream(bufferingPolicy: .bufferingNewest(32)) { continuation in
      let number = state.withLock { state in
        state.nextWatcher += 1
        state.watchers[state.nextWatcher] = continuation
        continuation.yield(state.colour)
        return state.nextWatcher
      }
      continuation.onTermination = { [weak self] _ in
        self?.state.withLock { _ = $0.watchers.removeValue(forKey: number) }
      }
    }
  }
}
