// SPDX-License-Identifier: Apache-2.0
import FrontPanel
import GPIO
import MobileAuth

/// Combines one or two button lines into the presses of the panel. If both are down, the press is invalid and ignored
/// until both are up. Pure.
struct TwoButtons {
  /// A line, by the number of its input.
  enum Line: Int {
    case main, deny

    var role: ButtonRole {
      switch self {
      case .main: .approve
      case .deny: .deny
      }
    }
  }

  private enum State: Equatable {
    case up
    case down
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
      if case .edgesLost = why { return [.void("\(why)")] }
      return [.unavailable("\(why)")]
    case .opened(let level, let at):
      isActive[line.rawValue] = level
      guard level else { return release(line, at: moment(at)) }
      state = .void
      return [.void("a button was already held when its line was opened"), .down(line.role, moment(at))]
    case .edge(let level, let at):
      isActive[line.rawValue] = level
      return level ? press(line, at: moment(at)) : release(line, at: moment(at))
    }
  }

  /// Ignores the present press, or the next one, until both buttons are up.
  mutating func void() { state = .void }

  private mutating func press(_ line: Line, at moment: MonotonicInstant) -> [ButtonEvent] {
    switch state {
    case .up:
      state = .down
      return [.down(line.role, moment)]
    case .down:
      state = .void
      return [.void("both buttons are down"), .down(line.role, moment)]
    case .void: return []
    }
  }

  private mutating func release(_ line: Line, at moment: MonotonicInstant) -> [ButtonEvent] {
    guard !isActive.contains(true), state != .up else { return [] }
    state = .up
    return [.up(moment)]
  }
}
