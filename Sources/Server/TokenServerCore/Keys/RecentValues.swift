// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Recently used values in bounded memory, such as parsed keys: two generations; the older one is dropped as a whole.
package final class RecentValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Generations {
    var current: [Key: Value] = [:]
    var previous: [Key: Value] = [:]
  }

  private let capacity: Int
  private let generations = Mutex(Generations())

  /// - Parameter capacity: the size of each generation.
  package init(capacity: Int) { self.capacity = capacity }

  package subscript(key: Key) -> Value? {
    generations.withLock { generations in
      if let value = generations.current[key] { return value }
      guard let value = generations.previous[key] else { return nil }
      insert(value, for: key, into: &generations)
      return value
    }
  }

  package func insert(_ value: Value, for key: Key) {
    generations.withLock { insert(value, for: key, into: &$0) }
  }

  private func insert(_ value: Value, for key: Key, into generations: inout Generations) {
    if generations.current.count >= capacity {
      (generations.previous, generations.current) = (generations.current, [:])
    }
    generations.current[key] = value
  }
}
