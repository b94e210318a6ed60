import Synchronization

/// Digits on their way from a keypad to whoever collects them, in locked memory. The announcement that there was one
/// takes another way, through event streams and their ordinary memory, and does not say which.
///
/// Digits and announcements stay in step: one cannot be put without the other, and each announcement is answered by
/// exactly one `move` or `discard`.
public final class DigitQueue: Sendable {
  /// More digits than this wait for nobody.
  public static let capacity = 64

  /// A ring: where a digit is depends on how many came before, never on a digit.
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

  /// How many wait.
  public var count: Int { ring.withLock { $0.count } }

  /// Puts a digit in and announces it, as one. It is taken back if the announcement fails, and not announced if the
  /// queue is full.
  /// - Parameters:
  ///   - digit: ASCII.
  ///   - announce: tells whoever collects, and returns whether that will arrive. Must not use this queue.
  /// - Returns: whether it is in.
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

  /// The oldest digit becomes the last of those typed.
  public func move(to typed: inout TypedDigits) {
    ring.withLock { typed.append($0.pop()) }
  }

  /// The oldest digit counts for nothing.
  public func discard() {
    ring.withLock { _ = $0.pop() }
  }
}
