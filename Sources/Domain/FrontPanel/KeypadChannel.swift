// SPDX-License-Identifier: Apache-2.0
public import MobileAuth
public import Secrets

/// The connection between a keypad driver, which delivers keys as a `KeySink`, and the panel, which reads them as a
/// `Keypad`.
public final class KeypadChannel: Keypad, KeySink {
  /// The maximum number of waiting events. A full channel rejects new ones. Each waiting digit has a locked page.
  public static let capacity = PIN.longest

  public let events: AsyncStream<KeypadEvent>
  private let continuation: AsyncStream<KeypadEvent>.Continuation
  private let clock: any TokenClock

  public init(clock: any TokenClock) {
    self.clock = clock
    (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.capacity))
  }

  public func press(_ key: KeyPress) { continuation.yield(.key(key, clock.now)) }

  public func keypadIsUnavailable(_ why: String) { continuation.yield(.unavailable(why)) }

  public func keypadIsAvailable() { continuation.yield(.available) }
}
