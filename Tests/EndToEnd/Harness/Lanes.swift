// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The sum of the outcomes of all lanes of one test, for checks that one lane alone need not pass.
final class Lanes: Sendable {
  private let state: Mutex<(left: Int, tally: [String: Int])>

  init(_ count: Int) { state = Mutex((count, [:])) }

  /// Called by each lane at its end.
  /// - Returns: the number of occurrences of each outcome in all lanes, for the last lane; nil for the others.
  func end(with outcomes: [String: Int]) -> [String: Int]? {
    state.withLock { state in
      state.tally.merge(outcomes, uniquingKeysWith: +)
      state.left -= 1
      return state.left == 0 ? state.tally : nil
    }
  }
}
