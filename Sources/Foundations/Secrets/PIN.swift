// SPDX-License-Identifier: Apache-2.0
/// A PIN as typed by the user: ASCII digits in locked memory, zeroed when the last reference is released. The number of
/// digits is not secret: a policy sets it, and an observer can count. The digits leave this type only for a key
/// derivation.
package struct PIN: Sendable, Equatable {
  /// The maximum number of digits.
  package static let longest = 32

  /// One byte per digit, ASCII.
  package let digits: SecretBytes

  /// - Parameter digits: ASCII digits. The keypad guarantees this; a check here would branch on each digit.
  package init(digits: SecretBytes) {
    precondition((1...Self.longest).contains(digits.count), "a PIN of \(digits.count) digits")
    self.digits = digits
  }

  package var count: Int { digits.count }

  /// Runs in a time that depends only on the lengths.
  package static func == (one: PIN, other: PIN) -> Bool { SecretBytes.constantTimeEqual(one.digits, other.digits) }
}
