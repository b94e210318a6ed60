import FrontPanel
import GPIO
import MobileAuth

/// Makes one button of one or two lines, for a panel that knows one. Pressing the second is pressing the first twice:
/// down, up and down at the moment it closes, up when it opens. Both at once is nobody's intention and counts for
/// nothing until both are up again. Pure.
struct TwoButtons {
  enum Line: Int { case main, deny }

  private enum State: Equatable {
    case up
    case down(Line)
    /// Something that was held counts for nothing; waits until both are up.
    case void
  }

  private var isActive = [false, false]
  private var state = State.up

  /// - Parameter moment: translates the time of an edge.
  mutating func hear(_ line: Line, _ event: InputEvent, at moment: (Duration) -> Moment) -> [ButtonEvent] {
    switch event {
    case .unavailable(let why):
      // Not `up`: whoever is on the line when it comes back has been there for who knows how long.
      isActive[line.rawValue] = true
      state = .void
      return [.unavailable("\(why)")]
    case .opened(let level, let at):
      isActive[line.rawValue] = level
      guard level else { return release(line, at: moment(at)) }
      state = .void
      return [.unavailable("a button has been held since before it could be read"), .down(moment(at))]
    case .edge(let level, let at):
      isActive[line.rawValue] = level
      return level ? press(line, at: moment(at)) : release(line, at: moment(at))
    }
  }

  private mutating func press(_ line: Line, at moment: Moment) -> [ButtonEvent] {
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

  private mutating func release(_ line: Line, at moment: Moment) -> [ButtonEvent] {
    guard !isActive.contains(true), state != .up else { return [] }
    state = .up
    return [.up(moment)]
  }
}
