import MobileAuth
import Synchronization

/// Plays one pattern at a time on the indicator, asleep between changes.
final class LEDPlayer: Sendable {
  private struct State {
    var playing: Indication?
    /// How many requests that pattern says are open.
    var openRequests = 0
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
  /// - Parameters:
  ///   - openRequests: how many requests are open.
  ///   - pause: to be dark first, for so long, and then begin in any case.
  func play(_ indication: Indication, openRequests: Int = 0, afterDark pause: Duration = .zero) {
    let pattern = indication.pattern(openRequests: openRequests)
    let start = timekeeper.now + pause
    state.withLock { state in
      let isNew = state.playing != indication || pattern != indication.pattern(openRequests: state.openRequests)
      guard isNew || pause > .zero else { return }
      begin(&state, indication)
      state.openRequests = openRequests
      let round = state.round
      if pause > .zero { indicator.light(nil) } else { light(pattern, indication.colour, after: .zero) }
      state.task = Task {
        await self.continue(pattern, indication.colour, from: start, isDark: pause > .zero, round: round)
      }
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

  private func light(_ pattern: LEDPattern, _ colour: LEDColour, after elapsed: Duration) {
    indicator.light(pattern.isLit(after: elapsed) ? colour : nil)
  }

  private func `continue`(
    _ pattern: LEDPattern, _ colour: LEDColour, from start: Moment, isDark: Bool, round: Int
  ) async {
    var next = isDark ? .zero : pattern.nextChange(after: .zero)
    while let change = next {
      guard (try? await timekeeper.sleep(until: start + change)) != nil else { return }
      let isOurs = state.withLock { state in
        guard state.round == round else { return false }
        light(pattern, colour, after: change)
        return true
      }
      guard isOurs else { return }
      next = pattern.nextChange(after: change)
    }
  }
}
