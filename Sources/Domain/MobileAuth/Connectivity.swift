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
  private let changes: ChangeSignal

  init(changes: ChangeSignal) { self.changes = changes }

  package var all: [TokenServerID: Reachability] { state.withLock { $0 } }

  package subscript(server: TokenServerID) -> Reachability? { state.withLock { $0[server] } }

  package func set(_ reachability: Reachability, to server: TokenServerID) {
    state.withLock { $0[server] = reachability }
    changes.raise()
  }

  func remove(_ server: TokenServerID) { state.withLock { $0[server] = nil } }
}
