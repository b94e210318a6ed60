// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// A state machine that turns button edges and elapsed time into gestures, for one prompt. Pure: it uses no clock and
/// no hardware.
package struct GestureRecognizer: Sendable {
  package enum Event: Sendable, Equatable {
    /// Pressed within the guard time. The press is ignored.
    case tooEarly
    case touched
    case released
    /// A short press, after which no second one began in time. It answers nothing.
    case shortPress
    /// Held as long as for an approval, in a prompt that no hold approves. Follows `released`.
    case ineffective
    /// Held long enough: releasing now accepts.
    case longEnoughToAccept
    /// Held long enough: releasing now reports "not me".
    case longEnoughToReport
    case stuck
    case gesture(Gesture)
  }

  private enum State {
    /// Down since before the prompt, or pressed within the guard time. Ignored until released.
    case ignoring(since: MonotonicInstant, reportedStuck: Bool)
    case ready
    /// - Parameters:
    ///   - denial: the gesture that the release completes, however long the press lasts: a second press, or a press of
    ///     the deny button. Nil for a first press, whose duration decides.
    ///   - reported: the last threshold that was reported.
    case down(since: MonotonicInstant, denial: Gesture.Kind?, reported: Duration)
    /// One short press is complete; a second one may follow.
    case between(firstDown: MonotonicInstant)
    case finished
  }

  private let timing: GestureTiming
  private var earliestPress: MonotonicInstant
  /// Gestures that this prompt accepts. Others are ignored.
  private let meaningful: Set<Gesture.Kind>
  private var state: State

  /// - Parameters:
  ///   - prompt: selects the accepted gestures.
  ///   - armedAt: when the request became active.
  ///   - isDown: the level of the button at that moment.
  package init(for prompt: Prompt = .confirmation, timing: GestureTiming, armedAt: MonotonicInstant, isDown: Bool) {
    self.timing = timing
    meaningful = prompt.gestures
    earliestPress = armedAt + timing.guardTime
    state = isDown ? .ignoring(since: armedAt, reportedStuck: false) : .ready
  }

  /// Resets after the line became unavailable. The button is treated as held until a release is seen.
  package mutating func forget(at moment: MonotonicInstant) {
    earliestPress = moment + timing.guardTime
    state = .ignoring(since: moment, reportedStuck: false)
  }

  /// The time at which `time(_:)` must be called if no edge comes before; nil if no threshold is pending.
  package var nextDeadline: MonotonicInstant? {
    switch state {
    case .ignoring(let since, false): since + timing.stuck
    case .ignoring, .ready, .finished: nil
    // Just after the last moment at which a second press is still accepted.
    case .between(let firstDown): firstDown + timing.doublePress + .nanoseconds(1)
    case .down(let since, let denial, let reported):
      thresholds(of: denial).first { $0.0 > reported }.map { since + $0.0 }
    }
  }

  package mutating func press(_ role: ButtonRole, at moment: MonotonicInstant) -> [Event] {
    var events = time(moment)
    switch state {
    case .ready, .between:
      guard moment >= earliestPress else {
        state = .ignoring(since: moment, reportedStuck: false)
        events.append(.tooEarly)
        break
      }
      // `time` has already ended a pause that was too long for a double press.
      let isSecond = if case .between = state { true } else { false }
      let denial: Gesture.Kind? =
        switch role {
        case .approve: isSecond ? .doublePress : nil
        case .deny: .denyButton
        }
      state = .down(since: moment, denial: denial, reported: .zero)
      if !isSecond { events.append(.touched) }
    case .ignoring, .down, .finished: break
    }
    return events
  }

  package mutating func release(at moment: MonotonicInstant) -> [Event] {
    var events = time(moment)
    switch state {
    case .ignoring(_, let reportedStuck):
      state = .ready
      if reportedStuck { events.append(.released) }
    case .down(let since, let denial, _):
      let held = moment - since
      if let denial {
        events += finish(denial, held)
      } else if held >= timing.reportHold {
        events += finish(.veryLongHold, held)
      } else if held >= timing.acceptHold, meaningful.contains(.hold) {
        events += finish(.hold, held)
      } else if held < timing.doublePress, meaningful.contains(.doublePress) {
        state = .between(firstDown: since)
      } else {
        state = .ready
        events.append(.released)
        if held >= timing.acceptHold { events.append(.ineffective) }
      }
    case .ready, .between, .finished: break
    }
    return events
  }

  /// Reports the thresholds that have been reached by `now`.
  package mutating func time(_ now: MonotonicInstant) -> [Event] {
    switch state {
    case .ignoring(let since, false) where now - since >= timing.stuck:
      state = .ignoring(since: since, reportedStuck: true)
      return [.stuck]
    case .between(let firstDown) where now - firstDown > timing.doublePress:
      state = .ready
      return [.shortPress, .released]
    case .down(let since, let denial, let reported):
      let reached = thresholds(of: denial).filter { $0.0 > reported && $0.0 <= now - since }
      guard let last = reached.last else { return [] }
      state = .down(since: since, denial: denial, reported: last.0)
      if last.1 == .stuck {
        state = .ignoring(since: since, reportedStuck: true)
      }
      return reached.map(\.1)
    case .ignoring, .ready, .between, .finished: return []
    }
  }

  /// The durations of a press that are reported, ascending.
  private func thresholds(of denial: Gesture.Kind?) -> [(Duration, Event)] {
    guard denial == nil else { return [(timing.stuck, .stuck)] }
    let accept = meaningful.contains(.hold) ? [(timing.acceptHold, Event.longEnoughToAccept)] : []
    return accept + [(timing.reportHold, .longEnoughToReport), (timing.stuck, .stuck)]
  }

  private mutating func finish(_ kind: Gesture.Kind, _ held: Duration) -> [Event] {
    state = .finished
    return [.gesture(Gesture(kind, held: held))]
  }
}
