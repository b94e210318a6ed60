// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The state of the connection to one token server.
package enum Reachability: String, Sendable {
  case connected
  case disconnected
  /// The server reported an error that only the operator can resolve.
  case stopped
}

/// The connection state of each token server with a listener.
package final class Connectivity: Sendable {
  private let state = Mutex([TokenServerID: Reachability]())
  private let faultState = Mutex([TokenServerID: TokenServerError]())
  private let outage = Mutex<TokenServerError?>(nil)
  private let changes: ChangeSignal
  /// Raised when servers may be reached again.
  let outageEnds = ChangeSignal()

  init(changes: ChangeSignal) { self.changes = changes }

  package var all: [TokenServerID: Reachability] {
    let states = state.withLock { $0 }
    guard outage.withLock({ $0 }) != nil else { return states }
    return states.mapValues { $0 == .connected ? .disconnected : $0 }
  }

  package subscript(server: TokenServerID) -> Reachability? { all[server] }

  /// Why servers are not connected, as far as it is known.
  package var faults: [TokenServerID: TokenServerError] {
    let faults = faultState.withLock { $0 }
    guard let outage = outage.withLock({ $0 }) else { return faults }
    return state.withLock { $0 }.mapValues { _ in outage }.merging(faults) { _, own in own }
  }

  /// While there is a reason why no server at all can be reached, none counts as connected.
  /// - Parameter reason: nil if servers may be reached again.
  package func setOutage(_ reason: TokenServerError?) {
    outage.withLock { $0 = reason }
    if reason == nil { outageEnds.raise() }
    changes.raise()
  }

  /// - Parameter fault: why the server is not connected; nil if it is, or before the first attempt.
  package func set(_ reachability: Reachability, to server: TokenServerID, because fault: TokenServerError? = nil) {
    faultState.withLock { $0[server] = fault }
    state.withLock { $0[server] = reachability }
    changes.raise()
  }

  func remove(_ server: TokenServerID) {
    faultState.withLock { $0[server] = nil }
    state.withLock { $0[server] = nil }
  }
}
