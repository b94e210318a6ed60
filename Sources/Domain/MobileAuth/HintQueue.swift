// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The hints that were not handled yet, at most one of each kind: a server or a broker can send any number of them.
final class HintQueue: Sendable {
  private let waiting = Mutex<[Hint]>([])
  private let changes = ChangeSignal()

  /// Replaces a waiting hint of the same kind.
  func put(_ hint: Hint) {
    waiting.withLock { waiting in
      waiting.removeAll { $0.kind == hint.kind }
      waiting.append(hint)
    }
    changes.raise()
  }

  /// Takes the oldest hint, as soon as there is one.
  /// - Throws: `CancellationError`.
  func next() async throws -> Hint {
    while true {
      let seen = changes.generation
      if let hint = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return hint }
      try await changes.wait(beyond: seen)
    }
  }
}

extension Hint {
  fileprivate var kind: Int {
    switch self {
    case .connected: 0
    case .disconnected: 1
    case .pendingChanged: 2
    case .revoked: 3
    }
  }
}

/// Limits how often something happens: at once up to `burst` times, then `burst` times in each second.
struct Pacer {
  private static let burst = 5
  private var former: [MonotonicInstant] = []

  /// When the next one may happen.
  func earliest(_ now: MonotonicInstant) -> MonotonicInstant {
    former.count < Self.burst ? now : max(now, former[0] + .seconds(1))
  }

  mutating func note(_ now: MonotonicInstant) {
    if former.count == Self.burst { former.removeFirst() }
    former.append(now)
  }
}
