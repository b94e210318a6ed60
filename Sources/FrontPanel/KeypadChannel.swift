public import MobileAuth
public import Secrets

/// What every keypad hands its keys to, whatever it is made of, and what the panel takes them from.
public final class KeypadChannel: Keypad, KeySink {
  public let events: AsyncStream<KeypadEvent>
  public let digits = DigitQueue()
  private let continuation: AsyncStream<KeypadEvent>.Continuation
  private let timekeeper: any Timekeeper

  public init(timekeeper: any Timekeeper) {
    self.timekeeper = timekeeper
    // A full stream refuses the newest key, and with it its digit; dropping the oldest would bring those that follow
    // out of step with the queue.
    (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(DigitQueue.capacity))
  }

  public func press(_ kind: KeyKind, digit: UInt8) {
    switch kind {
    case .digit: digits.put(digit) { tell(.key(.digit, timekeeper.now)) }
    case .enter, .delete, .clear, .escape, .other: _ = tell(.key(kind, timekeeper.now))
    }
  }

  public func keypadIsUnavailable(_ why: String) { _ = tell(.unavailable(why)) }

  public func keypadIsAvailable() { _ = tell(.available) }

  private func tell(_ event: KeypadEvent) -> Bool {
    if case .enqueued = continuation.yield(event) { true } else { false }
  }
}
