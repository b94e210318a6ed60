// SPDX-License-Identifier: Apache-2.0
/// The digits of one completed entry: 1 to `PIN.longest` ASCII digits in locked memory, zeroed when the last reference
/// is released. Whether they are a PIN or, for example, a number that the portal displays, is known only to the code
/// that asked for them. The number of digits is not secret.
package struct EnteredDigits: Sendable, Equatable {
  /// One byte per digit, ASCII.
  package let bytes: SecretBytes

  /// - Parameter bytes: ASCII digits. The keypad guarantees this; a check here would branch on each digit.
  package init(_ bytes: SecretBytes) {
    precondition((1...PIN.longest).contains(bytes.count), "an entry of \(bytes.count) digits")
    self.bytes = bytes
  }

  package var count: Int { bytes.count }

  /// Runs in a time that depends only on the lengths.
  package static func == (one: EnteredDigits, other: EnteredDigits) -> Bool {
    SecretBytes.constantTimeEqual(one.bytes, other.bytes)
  }
}

extension PIN {
  /// The entry as a PIN, where one was asked for. Shares the memory of the digits.
  package init(_ entry: EnteredDigits) { self.init(digits: entry.bytes) }
}
