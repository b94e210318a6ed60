// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import GPIO
import MobileAuth

/// Combines one or two button lines into the one button of the panel. A press of the deny button is reported as a
/// double press: down, up and down when it closes, up when it opens. If both are down, the press is invalid and ignored
/// until both are up. Pure.
struct TwoButtons {
  enum Line: Int { case main, deny }

  private enum State: Equatable {
    case up
    case down(Line)
    /// A press that is ignored. Waits until both buttons are up.
    case void
  }

  private var isActive = [false, false]
  private var state = State.up

  /// - Parameter moment: converts the time of an edge.
  mutating func hear(_ line: Line, _ event: InputEvent, at moment: (Duration) -> MonotonicInstant) -> [ButtonEvent] {
    switch event {
    case .unavailable(let why):
      // Treat the button as held until a release is seen; its state while unavailable is unknown.
      isActive[line.rawValue] = true
      state = .void
      return [.unavailable("\(why)")]
    case .opened(let level, let at):
      isActive[line.rawValue] = level
      guard level else { return release(line, at: moment(at)) }
      state = .void
      return [.unavailable("a button was already held when its line was opened"), .down(moment(at))]
    case .edge(let level, let at):
      isActive[line.rawValue] = level
      return level ? press(line, at: moment(at)) : release(line, at: moment(at))
    }
  }

  private mutating func press(_ line: Line, at moment: MonotonicInstant) -> [ButtonEvent] {
    switch (state, line) {
    case (.up, .main):
      state = .down(.main)
      return [.down(moment)]
    case (.up, .deny):
      state = .down(.deny)
      return [.down(moment), .up(moment), .down(moment)]
    case (.down, _):
      state = .void
      return [.unavailable("both buttons are down"), .down(moment)]
    case (.void, _): return []
    }
  }

  private mutating func release(_ line: Line, at moment: MonotonicInstant) -> [ButtonEvent] {
    guard !isActive.contains(true), state != .up else { return [] }
    state = .up
    return [.up(moment)]
  }
}
