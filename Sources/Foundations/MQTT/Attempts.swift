// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The attempts of this process to reach a broker. libmosquitto resolves a name, and connects to one address after the
/// other, each until the kernel gives up, in one call that cannot be interrupted.
enum Attempts {
  /// The maximum number of calls for which no connection waits any more. Each keeps a thread.
  static let mostAbandoned = 4

  /// Local addresses to connect from: with one, libmosquitto skips the broker's addresses of the other kind.
  private static let sources: [String?] = [nil, "0.0.0.0", "::"]
  private static let state = Mutex((abandoned: 0, source: 0))

  static func begin() throws(BrokerError) {
    guard state.withLock({ $0.abandoned }) < mostAbandoned else {
      throw .unreachable("\(mostAbandoned) earlier attempts to connect have not ended")
    }
  }

  /// - Parameter isTimedOut: whether an address that does not respond may have kept others from being tried: the next
  ///   attempts are limited to another kind.
  static func noteAbandoned(isTimedOut: Bool) {
    state.withLock { state in
      state.abandoned += 1
      if isTimedOut { state.source = (state.source + 1) % sources.count }
    }
  }

  static func noteEndOfAbandoned() { state.withLock { $0.abandoned -= 1 } }

  /// The number and the address of what to connect from; the address is nil for all.
  static var source: (number: Int, address: String?) {
    let number = state.withLock { $0.source }
    return (number, sources[number])
  }

  /// Ends the limit to one kind of address: the broker may have none.
  static func noteFailure(from source: Int) {
    state.withLock { state in
      if state.source == source { state.source = 0 }
    }
  }
}
