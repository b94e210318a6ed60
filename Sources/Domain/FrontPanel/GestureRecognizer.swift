// SPDX-License-Identifier: Apache-2.0
public import MobileAuth

/// A state machine that turns button edges and elapsed time into gestures, for one prompt. Pure: it uses no clock and
/// no hardware.
public struct GestureRecognizer: Sendable {
  public enum Event: Sendable, Equatable {
    /// Pressed within the guard time. The press is ignored.
    case tooEarly
    case touched
    case released
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
    case down(since: MonotonicInstant, isSecond: Bool, told: Duration)
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
  public init(for prompt: Prompt = .confirmation, timing: GestureTiming, armedAt: MonotonicInstant, isDown: Bool) {
    self.timing = timing
    meaningful =
      switch prompt {
      case .confirmation: [.hold, .doublePress, .veryLongHold]
      case .digits, .denial, .veryLongHold: [.doublePress, .veryLongHold]
      }
    earliestPress = armedAt + timing.guardTime
    state = isDown ? .ignoring(since: armedAt, reportedStuck: false) : .ready
  }

  /// Resets after the line became unavailable. The button is treated as held until a release is seen.
  public mutating func forget(at moment: MonotonicInstant) {
    earliestPress = moment + timing.guardTime
    state = .ignoring(since: moment, reportedStuck: false)
  }

  /// The time at which `time(_:)` must be called if no edge comes before; nil if no threshold is pending.
  public var nextDeadline: MonotonicInstant? {
    switch state {
    case .ignoring(let since, false): since + timing.stuck
    case .ignoring, .ready, .finished: nil
    // Just after the last moment at which a second press is still accepted.
    case .between(let firstDown): firstDown + timing.doublePress + .nanoseconds(1)
    case .down(let since, let isSecond, let told):
      thresholds(isSecond: isSecond).first { $0.0 > told }.map { since + $0.0 }
    }
  }

  public mutating func press(at moment: MonotonicInstant) -> [Event] {
    var findings = time(moment)
    switch state {
    case .ready, .between:
      guard moment >= earliestPress else {
        state = .ignoring(since: moment, reportedStuck: false)
        findings.append(.tooEarly)
        break
      }
      // `time` has already ended a pause that was too long for a double press.
      if case .between = state {
        state = .down(since: moment, isSecond: true, told: .zero)
      } else {
        state = .down(since: moment, isSecond: false, told: .zero)
        findings.append(.touched)
      }
    case .ignoring, .down, .finished: break
    }
    return findings
  }

  public mutating func release(at moment: MonotonicInstant) -> [Event] {
    var findings = time(moment)
    switch state {
    case .ignoring(_, let reportedStuck):
      state = .ready
      if reportedStuck { findings.append(.released) }
    case .down(let since, let isSecond, _):
      let held = moment - since
      if isSecond {
        findings += finish(.doublePress, held)
      } else if held >= timing.reportHold {
        findings += finish(.veryLongHold, held)
      } else if held >= timing.acceptHold, meaningful.contains(.hold) {
        findings += finish(.hold, held)
      } else if held < timing.doublePress, meaningful.contains(.doublePress) {
        state = .between(firstDown: since)
      } else {
        state = .ready
        findings.append(.released)
      }
    case .ready, .between, .finished: break
    }
    return findings
  }

  /// Reports the thresholds that have been reached by `now`.
  public mutating func time(_ now: MonotonicInstant) -> [Event] {
    switch state {
    case .ignoring(let since, false) where now - since >= timing.stuck:
      state = .ignoring(since: since, reportedStuck: true)
      return [.stuck]
    case .between(let firstDown) where now - firstDown > timing.doublePress:
      state = .ready
      return [.released]
    case .down(let since, let isSecond, let told):
      let reached = thresholds(isSecond: isSecond).filter { $0.0 > told && $0.0 <= now - since }
      guard let last = reached.last else { return [] }
      state = .down(since: since, isSecond: isSecond, told: last.0)
      if last.1 == .stuck {
        state = .ignoring(since: since, reportedStuck: true)
      }
      return reached.map(\.1)
    case .ignoring, .ready, .between, .finished: return []
    }
  }

  private func thresholds(isSecond: Bool) -> [(Duration, Event)] {
    var thresholds: [(Duration, Event)] = []
    if !isSecond, meaningful.contains(.hold) { thresholds.append((timing.acceptHold, .longEnoughToAccept)) }
    if !isSecond { thresholds.append((timing.reportHold, .longEnoughToReport)) }
    return thresholds + [(timing.stuck, .stuck)]
  }

  private mutating func finish(_ kind: Gesture.Kind, _ held: Duration) -> [Event] {
    state = .finished
    return [.gesture(Gesture(kind, held: held))]
  }
}
