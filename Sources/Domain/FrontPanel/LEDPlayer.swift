// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Synchronization

/// Plays one pattern at a time on the indicator and sleeps between changes.
final class LEDPlayer: Sendable {
  private struct State {
    var playing: Indication?
    /// The number of entries submitted since the panel started.
    var entries = 0
    /// The number of open requests that the pattern shows.
    var openRequests = 0
    var task: Task<Void, Never>?
    /// The number of the pattern that owns the indicator. The task of an earlier pattern may still wake up and must
    /// then do nothing.
    var round = 0

    var context: LEDContext {
      var context = LEDContext()
      if let playing { context.indication = playing }
      context.entries = entries
      return context
    }
  }

  private let indicator: any Indicator
  private let clock: any TokenClock
  private let state = Mutex(State())

  init(indicator: any Indicator, clock: any TokenClock) {
    self.indicator = indicator
    self.clock = clock
  }

  /// Nil after `stop` and before the first pattern.
  var showing: Indication? { state.withLock { $0.playing } }

  /// What the LED shows now; without a pattern, as a token that is not connected.
  var context: LEDContext { state.withLock { $0.context } }

  /// Counts a submitted entry. Call it before the reaction to it is shown.
  func countEntry() { state.withLock { $0.entries += 1 } }

  /// Begins the pattern. Has no effect if the same pattern is already playing, so that repeated calls do not disturb
  /// it.
  /// - Parameters:
  ///   - openRequests: the number of open requests.
  ///   - pause: how long the LED is dark first. If above zero, the pattern begins in every case.
  ///   - again: begins the pattern in every case.
  func play(
    _ indication: Indication, openRequests: Int = 0, afterDark pause: Duration = .zero, again: Bool = false
  ) {
    let (pattern, color) = (indication.pattern(openRequests: openRequests), indication.row.color)
    let start = clock.now + pause
    state.withLock { state in
      let isNew = state.playing != indication || pattern != indication.pattern(openRequests: state.openRequests)
      guard isNew || again || pause > .zero else { return }
      begin(&state, indication)
      state.openRequests = openRequests
      let round = state.round
      let isLit = pause == .zero && pattern.isLit(after: .zero)
      indicator.light(isLit ? color : nil, in: state.context)
      state.task = Task {
        await self.continue(pattern, color, from: start, isDark: pause > .zero, round: round)
      }
    }
  }

  /// Switches the LED off until the next `play`.
  func stop() {
    state.withLock { state in
      begin(&state, nil)
      indicator.light(nil, in: state.context)
    }
  }

  private func begin(_ state: inout State, _ indication: Indication?) {
    state.task?.cancel()
    state.task = nil
    state.playing = indication
    state.round += 1
  }

  private func `continue`(
    _ pattern: LEDPattern, _ color: LEDColor, from start: MonotonicInstant, isDark: Bool, round: Int
  ) async {
    var next = isDark ? .zero : pattern.nextChange(after: .zero)
    while let change = next {
      guard (try? await clock.sleep(until: start + change)) != nil else { return }
      let isOurs = state.withLock { state in
        guard state.round == round else { return false }
        indicator.light(pattern.isLit(after: change) ? color : nil, in: state.context)
        return true
      }
      guard isOurs else { return }
      next = pattern.nextChange(after: change)
    }
  }
}
