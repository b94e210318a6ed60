// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

/// The connection between a keypad driver, which delivers keys as a `KeySink`, and the panel, which reads them as a
/// `Keypad`.
package final class KeypadChannel: Keypad, KeySink {
  /// The maximum number of waiting events. A full channel rejects new ones. Each waiting digit has a locked page.
  package static let capacity = PIN.longest

  package let events: AsyncStream<KeypadEvent>
  private let continuation: AsyncStream<KeypadEvent>.Continuation
  private let clock: any TokenClock

  package init(clock: any TokenClock) {
    self.clock = clock
    (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.capacity))
  }

  package func press(_ key: KeyPress) { continuation.yield(.key(key, clock.now)) }

  package func keypadIsUnavailable(_ why: String) { continuation.yield(.unavailable(why)) }

  package func keypadIsAvailable() { continuation.yield(.available) }
}
