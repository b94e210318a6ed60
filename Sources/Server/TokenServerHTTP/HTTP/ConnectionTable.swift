// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Counts connections, in total and per source. An authenticated event stream counts only in total: a load balancer or
/// NAT has one address for thousands of devices, and each device has one stream.
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

  /// - Returns: whether the connection is within the limits. If so it is counted, until `leave`.
  func enter(from source: String) -> Bool {
    state.withLock { state in
      guard state.total < limit, state.sources[source, default: 0] < limitPerSource else { return false }
      state.total += 1
      state.sources[source, default: 0] += 1
      return true
    }
  }

  func leave() { state.withLock { $0.total -= 1 } }

  /// Counts a connection for its source again.
  /// - Returns: false if the source is at its limit; the connection is not counted then.
  func attribute(to source: String) -> Bool {
    state.withLock { state in
      guard state.sources[source, default: 0] < limitPerSource else { return false }
      state.sources[source, default: 0] += 1
      return true
    }
  }

  /// Stops counting a connection for its source.
  func release(from source: String) {
    state.withLock { state in
      state.sources[source] = state.sources[source].flatMap { $0 > 1 ? $0 - 1 : nil }
    }
  }

  var total: Int { state.withLock { $0.total } }
}
