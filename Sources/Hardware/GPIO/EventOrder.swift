// SPDX-License-Identifier: Apache-2.0
/// Puts the events of several inputs into the order of their times. Pure.
///
/// Inputs settle after different times. An event that is later than an unsettled edge is therefore held back until that
/// edge has settled, but not longer than the longest window of a debouncer: a contact that never settles does not block
/// the other one.
struct EventOrder {
  struct Entry {
    let input: Int
    let event: InputEvent
    fileprivate let at: Duration
    fileprivate let added: Duration
  }

  private var held: [Entry] = []

  mutating func add(_ input: Int, _ event: InputEvent, now: Duration) {
    var at = Duration.zero
    switch event {
    case .opened(_, let moment), .edge(_, let moment): at = moment
    // Comes first: the others must not count before it. What the input did until then is of no use.
    case .unavailable: held.removeAll { $0.input == input }
    }
    let place = held.firstIndex { $0.at > at } ?? held.endIndex
    held.insert(Entry(input: input, event: event, at: at, added: now), at: place)
  }

  /// Removes the events that are not held back any longer, and returns them in their order.
  /// - Parameter unsettled: the time of the first edge of any input that has not settled; nil if there is none.
  mutating func take(now: Duration, unsettled: Duration?) -> [Entry] {
    let isDue = { (entry: Entry) -> Bool in
      guard let unsettled else { return true }
      return entry.at <= unsettled || now - entry.added >= Debouncer.windows.upperBound
    }
    guard let last = held.lastIndex(where: isDue) else { return [] }
    defer { held.removeFirst(last + 1) }
    return Array(held[...last])
  }
}
