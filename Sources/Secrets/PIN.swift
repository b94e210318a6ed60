/// Digits that a person typed: ASCII `0` to `9` in locked memory, zeroed when the last owner lets go. How many there
/// are is no secret (a policy fixes it, and whoever watches can count); which they are never leaves this type except
/// into a key derivation.
public struct PIN: Sendable, Equatable {
  /// A PIN has at most this many digits.
  public static let longest = 32

  /// One byte per digit, ASCII.
  public let digits: SecretBytes

  /// - Parameter digits: ASCII digits; that they are is the keypad's promise, checking it here would be a branch on
  ///   each.
  public init(digits: SecretBytes) {
    precondition((1...Self.longest).contains(digits.count), "a PIN of \(digits.count) digits")
    self.digits = digits
  }

  public var count: Int { digits.count }

  /// In a time that depends on the lengths alone.
  public static func == (one: PIN, other: PIN) -> Bool { SecretBytes.constantTimeEqual(one.digits, other.digits) }
}
