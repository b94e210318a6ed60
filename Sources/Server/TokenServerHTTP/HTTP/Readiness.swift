// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Whether a load balancer should send requests to this server.
package final class Readiness: Sendable {
  package enum State: String, Sendable {
    case starting, ready
    /// The server still answers, and will end soon.
    case draining
  }

  private let stored = Mutex(State.starting)

  package init() {}

  package var state: State { stored.withLock { $0 } }

  package func begin() { stored.withLock { if $0 == .starting { $0 = .ready } } }

  package func drain() { stored.withLock { $0 = .draining } }
}
