// SPDX-License-Identifier: Apache-2.0
public import MobileAuth
public import Secrets

/// The connection between a keypad driver, which delivers keys as a `KeySink`, and the panel, which reads them as a
/// `Keypad`.
public final class KeypadChannel: Keypad, KeySink {
  public let events: AsyncStream<KeypadEvent>
  public let digits = DigitQueue()
  private let continuation: AsyncStream<KeypadEvent>.Continuation
  private let clock: any TokenClock

  public init(clock: any TokenClock) {
    self.clock = clock
    // A full stream rejects the newest key together with its digit. Dropping the oldest key would make the remaining
    // keys and the digits in the queue disagree.
    (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(DigitQueue.capacity))
  }

  public func press(_ kind: KeyKind, digit: UInt8) {
    switch kind {
    case .digit: digits.put(digit) { notify(.key(.digit, clock.now)) }
    case .enter, .delete, .clear, .escape, .other: _ = notify(.key(kind, clock.now))
    }
  }

  public func keypadIsUnavailable(_ why: String) { _ = notify(.unavailable(why)) }

  public func keypadIsAvailable() { _ = notify(.available) }

  private func notify(_ event: KeypadEvent) -> Bool {
    if case .enqueued = continuation.yield(event) { true } else { false }
  }
}
