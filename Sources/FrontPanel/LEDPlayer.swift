// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Synchronization

/// Plays one pattern at a time on the indicator and sleeps between changes.
final class LEDPlayer: Sendable {
  private struct State {
    var playing: Indication?
    /// The number of open requests that the pattern shows.
    var openRequests = 0
    var task: Task<Void, Never>?
    /// The number of the pattern that owns the indicator. The task of an earlier pattern may still wake up and must
    /// then do nothing.
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

  /// Begins the pattern. Has no effect if the same pattern is already playing, so that repeated calls do not disturb
  /// it.
  /// - Parameters:
  ///   - openRequests: the number of open requests.
  ///   - pause: how long the LED is dark first. If above zero, the pattern begins in every case.
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

  /// Switches the LED off until the next `play`.
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
