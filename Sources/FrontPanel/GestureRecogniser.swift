public import MobileAuth

/// How long is long. A board profile may change these within the stated bounds.
public struct GestureTiming: Sendable, Equatable {
  /// A press must begin at least this long after the request became active: 0.3 to 5 s.
  public var guardTime = Duration.milliseconds(500)
  /// Held at least this long, then released: accept. 0.5 to 3 s.
  public var acceptHold = Duration.milliseconds(800)
  /// Two presses whose beginnings are at most this far apart: deny. 0.3 to 1 s.
  public var doublePress = Duration.milliseconds(600)
  /// Held at least this long: deny and report. 4 to 9 s.
  public var reportHold = Duration.seconds(6)
  /// Held longer than this: the button is stuck. 10 to 60 s.
  public var stuck = Duration.seconds(10)

  public init() {}
}

/// Turns edges and the passing of time into gestures, for one challenge. Pure: it knows no clock and no hardware.
public struct GestureRecogniser: Sendable {
  public enum Finding: Sendable, Equatable {
    case touched
    case released
    /// Releasing now accepts.
    case longEnoughToAccept
    /// Releasing now reports "not me".
    case longEnoughToReport
    case stuck
    case gesture(Gesture)
  }

  private enum State {
    /// Down since before this challenge, or pressed too early: counts for nothing until released.
    case ignoring(since: Moment, reportedStuck: Bool)
    case ready
    case down(since: Moment, isSecond: Bool, told: Duration)
    /// One short press is over; a second one may follow.
    case between(firstDown: Moment)
    case finished
  }

  private let timing: GestureTiming
  private let earliestPress: Moment
  private var state: State

  /// - Parameters:
  ///   - armedAt: when the request became active.
  ///   - isDown: the line's level at that moment.
  public init(timing: GestureTiming, armedAt: Moment, isDown: Bool) {
    self.timing = timing
    earliestPress = armedAt + timing.guardTime
    state = isDown ? .ignoring(since: armedAt, reportedStuck: false) : .ready
  }

  /// When `time(_:)` has something to say even if no edge comes.
  public var nextMoment: Moment? {
    switch state {
    case .ignoring(let since, false): since + timing.stuck
    case .ignoring, .ready, .finished: nil
    // Just after the last moment at which a second press still counts.
    case .between(let firstDown): firstDown + timing.doublePress + .nanoseconds(1)
    case .down(let since, let isSecond, let told):
      thresholds(isSecond: isSecond).first { $0.0 > told }.map { since + $0.0 }
    }
  }

  public mutating func press(at moment: Moment) -> [Finding] {
    var findings = time(moment)
    switch state {
    case .ready, .between:
      guard moment >= earliestPress else {
        state = .ignoring(since: moment, reportedStuck: false)
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

  public mutating func release(at moment: Moment) -> [Finding] {
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
      } else if held >= timing.acceptHold {
        findings += finish(.hold, held)
      } else if held < timing.doublePress {
        state = .between(firstDown: since)
      } else {
        state = .ready
        findings.append(.released)
      }
    case .ready, .between, .finished: break
    }
    return findings
  }

  /// Tells what the passing of time alone has brought about.
  public mutating func time(_ now: Moment) -> [Finding] {
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

  private func thresholds(isSecond: Bool) -> [(Duration, Finding)] {
    let stuck = [(timing.stuck, Finding.stuck)]
    return isSecond
      ? stuck : [(timing.acceptHold, .longEnoughToAccept), (timing.reportHold, .longEnoughToReport)] + stuck
  }

  private mutating func finish(_ kind: Gesture.Kind, _ held: Duration) -> [Finding] {
    state = .finished
    return [.gesture(Gesture(kind, held: held))]
  }
}
