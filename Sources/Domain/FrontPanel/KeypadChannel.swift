// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets
import Synchronization

/// The connection between a keypad driver, which delivers keys as a `KeySink`, and the panel, which reads them as a
/// `Keypad`.
package final class KeypadChannel: Keypad, KeySink {
  /// The maximum number of waiting events. A full channel rejects new ones. Each waiting digit has a locked page.
  package static let capacity = PIN.longest

  package let events: AsyncStream<KeypadEvent>
  private let continuation: AsyncStream<KeypadEvent>.Continuation
  private let clock: any TokenClock
  /// Changes of the availability that the full channel did not take, at most two. They come before the next key: digits
  /// typed before the keypad was lost must not be taken together with later ones.
  private let changes = Mutex<[KeypadEvent]>([])

  package init(clock: any TokenClock) {
    self.clock = clock
    (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.capacity))
  }

  package func press(_ key: KeyPress) {
    if deliverChanges() { continuation.yield(.key(key, clock.now)) }
  }

  package func keypadIsUnavailable(_ why: String) { change(.unavailable(why)) }

  package func keypadIsAvailable() { change(.available) }

  private func change(_ event: KeypadEvent) {
    changes.withLock { $0 = $0.suffix(1) + [event] }
    _ = deliverChanges()
  }

  /// - Returns: whether none is left.
  private func deliverChanges() -> Bool {
    changes.withLock { changes in
      while let next = changes.first {
        if case .dropped = continuation.yield(next) { return false }
        changes.removeFirst()
      }
      return true
    }
  }
}
