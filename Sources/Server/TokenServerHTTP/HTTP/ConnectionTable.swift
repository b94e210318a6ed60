// SPDX-License-Identifier: Apache-2.0
import Synchronization
import TokenServerCore

/// Counts connections, in total, per source, and per /48 of IPv6 sources, of which a customer of a provider has 65,536.
/// The event stream of a device with a user counts only in total: a load balancer or NAT has one address for thousands
/// of devices, and each device has one stream. So does the one connection that is kept for the next request of each
/// device; it is closed when its place is needed.
final class ConnectionTable: Sendable {
  private struct State {
    var total = 0
    /// Those of them that are being closed because their place was needed.
    var closing = 0
    var sources: Sources
    var kept = KeptConnections()
  }

  /// The connections of each source, and of each /48.
  private struct Sources {
    /// A /48 may have as many connections as this number of sources.
    static let perSite = 8

    let limit: Int
    private var counts: [String: Int] = [:]

    init(limit: Int) { self.limit = limit }

    /// - Returns: false at a limit; nothing is counted then.
    mutating func add(_ source: String) -> Bool {
      let site = ConnectionSource.site(of: source)
      let siteCount = site.map { counts[$0, default: 0] } ?? 0
      guard counts[source, default: 0] < limit, siteCount / Self.perSite < limit else { return false }
      counts[source, default: 0] += 1
      if let site { counts[site] = siteCount + 1 }
      return true
    }

    mutating func remove(_ source: String) {
      for key in [source, ConnectionSource.site(of: source)].compactMap(\.self) {
        counts[key] = counts[key].flatMap { $0 > 1 ? $0 - 1 : nil }
      }
    }
  }

  /// How many connections may be above the limit while others are being closed, which takes up to 200 ms each.
  private static let mostClosing = 128

  private let limit: Int
  private let isMeasured: Bool
  private let state: Mutex<State>

  /// - Parameter isMeasured: whether refused connections are counted in the metrics.
  init(limit: Int, limitPerSource: Int, isMeasured: Bool = true) {
    self.limit = limit
    self.isMeasured = isMeasured
    state = Mutex(State(sources: Sources(limit: limitPerSource)))
  }

  /// - Returns: whether the connection is within the limits. If so it is counted, until `leave`.
  func enter(from source: String) -> Bool {
    let (refusal, oldest) = state.withLock { state -> (ServerMetrics.ConnectionLimit?, KeptConnections.Close?) in
      guard state.sources.add(source) else { return (.source, nil) }
      var oldest: KeptConnections.Close?
      if state.total - state.closing >= limit {
        oldest = state.closing < Self.mostClosing ? state.kept.removeOldest() : nil
        guard oldest != nil else {
          state.sources.remove(source)
          return (.all, nil)
        }
        state.closing += 1
      }
      state.total += 1
      return (nil, oldest)
    }
    oldest?()
    if let refusal, isMeasured { ServerMetrics.countRefusedConnection(at: refusal) }
    return refusal == nil
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
    state.withLock { $0.sources.add(source) }
  }

  /// Stops counting a connection for its source.
  func release(from source: String) {
    state.withLock { $0.sources.remove(source) }
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
