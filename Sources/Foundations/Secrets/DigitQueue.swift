// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A queue of typed digits in locked memory, between the keypad and the panel. Events about digits are sent separately,
/// through event streams in ordinary memory, without the value of the digit.
///
/// Invariant: the queue has one digit for each event. A digit cannot be put without its event, and the consumer handles
/// each event with exactly one `move` or `discard`.
public final class DigitQueue: Sendable {
  /// The maximum number of waiting digits.
  public static let capacity = 64

  /// A ring buffer. The position of a digit depends on the number of digits before it, never on a digit.
  private struct Ring: ~Copyable {
    var buffer = SecretBuffer(count: capacity)
    var first = 0
    var count = 0

    mutating func pop() -> UInt8 {
      precondition(count > 0, "a digit was announced that is not there")
      let digit = buffer.withMutableBytes { bytes in
        defer { bytes[first] = 0 }
        return bytes[first]
      }
      first = (first + 1) % capacity
      count -= 1
      return digit
    }
  }

  private let ring = Mutex(Ring())

  public init() {}

  /// The number of waiting digits.
  public var count: Int { ring.withLock { $0.count } }

  /// Appends a digit and sends its event as one operation. If the event cannot be sent the digit is removed again. If
  /// the queue is full no event is sent.
  /// - Parameters:
  ///   - digit: ASCII.
  ///   - announce: sends the event and returns whether it will arrive. Must not use this queue.
  /// - Returns: whether the digit was appended.
  @discardableResult
  public func put(_ digit: UInt8, announce: () -> Bool) -> Bool {
    ring.withLock { ring in
      guard ring.count < Self.capacity else { return false }
      let end = (ring.first + ring.count) % Self.capacity
      ring.buffer.withMutableBytes { $0[end] = digit }
      guard announce() else {
        ring.buffer.withMutableBytes { $0[end] = 0 }
        return false
      }
      ring.count += 1
      return true
    }
  }

  /// Moves the oldest digit to the end of `typed`.
  public func move(to typed: inout TypedDigits) {
    ring.withLock { typed.append($0.pop()) }
  }

  /// Removes the oldest digit.
  public func discard() {
    ring.withLock { _ = $0.pop() }
  }
}
