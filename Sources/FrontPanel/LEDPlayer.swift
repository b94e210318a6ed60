import MobileAuth
import Synchronization

/// Plays one pattern at a time on the indicator, asleep between changes.
final class LEDPlayer: Sendable {
  private struct State {
    var playing: Indication?
    var task: Task<Void, Never>?
    /// Tells a former pattern, whose task may still be waking up, that the indicator is no longer its own.
    var round = 0
  }

  private let indicator: any Indicator
  private let timekeeper: any Timekeeper
  private let state = Mutex(State())

  init(indicator: any Indicator, timekeeper: any Timekeeper) {
    self.indicator = indicator
    self.timekeeper = timekeeper
  }

  var showing: Indication? { state.withLock { $0.playing } }

  /// Begins the pattern, unless it is the one already playing: asking again must not make it stumble.
  func play(_ indication: Indication) {
    let start = timekeeper.now
    state.withLock { state in
      guard state.playing != indication else { return }
      begin(&state, indication)
      let round = state.round
      light(indication, after: .zero)
      state.task = Task { await self.continue(indication, from: start, round: round) }
    }
  }

  /// Dark, until the next `play`.
  func stop() {
    state.withLock { state in
      begin(&state, nil)
      indicator.light(nil)
    }
  }

  private func begin(_ state: inout State, _ indication: Indication?) {
    state.task?.cancel()
    state.task = nil
    state.playing = indication
    state.round += 1
  }

  private func light(_ indication: Indication, after elapsed: Duration) {
    indicator.light(indication.pattern.isLit(after: elapsed) ? indication.colour : nil)
  }

  private func `continue`(_ indication: Indication, from start: Moment, round: Int) async {
    var elapsed = Duration.zero
    while let change = indication.pattern.nextChange(after: elapsed) {
      guard (try? await timekeeper.sleep(until: start + change)) != nil else { return }
      elapsed = change
      let isOurs = state.withLock { state in
        guard state.round == round else { return false }
        light(indication, after: elapsed)
        return true
      }
      guard isOurs else { return }
    }
  }
}
