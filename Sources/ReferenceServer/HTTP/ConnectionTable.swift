import Synchronization

/// How many connections there are, in all and of each source. An authenticated event stream counts in all alone: a load
/// balancer, or a company's NAT, is one address for thousands of devices, and of each device there is one stream.
final class ConnectionTable: Sendable {
  private struct State {
    var total = 0
    var sources: [String: Int] = [:]
  }

  private let limit: Int
  private let limitPerSource: Int
  private let state = Mutex(State())

  init(limit: Int, limitPerSource: Int) {
    self.limit = limit
    self.limitPerSource = limitPerSource
  }

  /// - Returns: whether there is room; only then it counts, until `leave`.
  func enter(from source: String) -> Bool {
    state.withLock { state in
      guard state.total < limit, state.sources[source, default: 0] < limitPerSource else { return false }
      state.total += 1
      state.sources[source, default: 0] += 1
      return true
    }
  }

  func leave() { state.withLock { $0.total -= 1 } }

  /// A connection that goes on counts for the source again.
  /// - Returns: false if the source has its limit; then it does not count.
  func attribute(to source: String) -> Bool {
    state.withLock { state in
      guard state.sources[source, default: 0] < limitPerSource else { return false }
      state.sources[source, default: 0] += 1
      return true
    }
  }

  /// A connection no longer counts for the source.
  func release(from source: String) {
    state.withLock { state in
      state.sources[source] = state.sources[source].flatMap { $0 > 1 ? $0 - 1 : nil }
    }
  }

  var total: Int { state.withLock { $0.total } }
}
