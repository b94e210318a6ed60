// SPDX-License-Identifier: Apache-2.0

/// Items and the times at which they are due. Equal times keep the order of insertion.
struct TimerQueue<Item> {
  /// The next one is last.
  private var entries: [(due: Int64, item: Item)] = []

  /// The time of the next item; nil if there is none.
  var next: Int64? { entries.last?.due }

  /// - Returns: whether the item is the next one.
  mutating func insert(_ item: Item, due: Int64) -> Bool {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].due > due { low = middle + 1 } else { high = middle }
    }
    entries.insert((due, item), at: low)
    return low == entries.count - 1
  }

  /// Removes the next item if it is due at `now`.
  mutating func takeDue(at now: Int64) -> Item? {
    guard let next, next <= now else { return nil }
    return entries.removeLast().item
  }
}
