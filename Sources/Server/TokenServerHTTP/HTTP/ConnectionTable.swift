// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Counts connections, in total and per source. An authenticated event stream counts only in total: a load balancer or
/// NAT has one address for thousands of devices, and each device has one stream. So does the one connection that is
/// kept for the next request of each device; it is closed when its place is needed.
final class ConnectionTable: Sendable {
  private struct State {
    var total = 0
    /// Those of them that are being closed because their place was needed.
    var closing = 0
    var sources: [String: Int] = [:]
    var kept = KeptConnections()
  }

  /// How many connections may be above the limit while others are being closed, which takes up to 200 ms each.
  private static let mostClosing = 128

  private let limit: Int
  private let limitPerSource: Int
  private let state = Mutex(State())

  init(limit: Int, limitPerSource: Int) {
    self.limit = limit
    self.limitPerSource = limitPerSource
  }

  /// - Returns: whether the connection is within the limits. If so it is counted, until `leave`.
  func enter(from source: String) -> Bool {
    let (isWithinLimits, oldest) = state.withLock { state -> (Bool, KeptConnections.Close?) in
      guard state.sources[source, default: 0] < limitPerSource else { return (false, nil) }
      var oldest: KeptConnections.Close?
      if state.total - state.closing >= limit {
        guard state.closing < Self.mostClosing else { return (false, nil) }
        oldest = state.kept.removeOldest()
        guard oldest != nil else { return (false, nil) }
        state.closing += 1
      }
      state.total += 1
      state.sources[source, default: 0] += 1
      return (true, oldest)
    }
    oldest?()
    return isWithinLimits
  }

  /// - Parameter wasEvicted: whether the connection has lost its place before.
  func leave(wasEvicted: Bool = false) {
    state.withLock { state in
      state.total -= 1
      if wasEvicted { state.closing -= 1 }
    }
  }

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

  /// Keeps an idle connection for the next request of its device, and closes the one that was kept for it before.
  /// - Parameter close: called if the place is needed, on any thread.
  /// - Returns: the connection's number, for `resume`.
  func keep(for device: String, close: @escaping KeptConnections.Close) -> UInt64 {
    let (number, former) = state.withLock { state in
      let former = state.kept.remove(of: device)
      if former != nil { state.closing += 1 }
      return (state.kept.insert(close, for: device), former)
    }
    former?()
    return number
  }

  /// Ends the waiting of a kept connection, because it has a request or was closed by its client.
  /// - Returns: false if the connection has lost its place.
  func resume(_ number: UInt64) -> Bool { state.withLock { $0.kept.remove(number) } }

  var total: Int { state.withLock { $0.total } }
}
