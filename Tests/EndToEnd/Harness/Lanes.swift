import Synchronization

/// What the lanes of one test have seen together, for what must be true of all of them and need not be of each.
final class Lanes: Sendable {
  private let state: Mutex<(left: Int, tally: [String: Int])>

  init(_ count: Int) { state = Mutex((count, [:])) }

  /// Called by each lane at its end.
  /// - Returns: how often which outcome came in all lanes, for the last of them; nil for the others.
  func end(with outcomes: [String: Int]) -> [String: Int]? {
    state.withLock { state in
      state.tally.merge(outcomes, uniquingKeysWith: +)
      state.left -= 1
      return state.left == 0 ? state.tally : nil
    }
  }
}
