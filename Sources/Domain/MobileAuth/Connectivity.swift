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
  private let changes: ChangeSignal

  init(changes: ChangeSignal) { self.changes = changes }

  package var all: [TokenServerID: Reachability] { state.withLock { $0 } }

  package subscript(server: TokenServerID) -> Reachability? { state.withLock { $0[server] } }

  /// Why servers are not connected, as far as it is known.
  package var faults: [TokenServerID: TokenServerError] { faultState.withLock { $0 } }

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
