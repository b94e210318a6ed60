// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// A one-time activation code: 12 random digits and a Luhn check digit (ISO/IEC 7812-1 Annex B). It can be typed on a
/// keypad, and the check digit detects most typing errors before they cost an attempt.
package struct ActivationCode: Sendable, Equatable {
  /// 13 digits.
  package let digits: String

  package init?(_ text: String) {
    let digits = text.filter { $0 != " " && $0 != "-" }
    guard digits.utf8.count == 13, digits.utf8.allSatisfy({ (48...57).contains($0) }),
      luhnCheckDigit(of: digits.dropLast()) == digits.last
    else { return nil }
    self.digits = digits
  }

  /// Creates a code of 12 uniformly distributed digits (bytes of 250 and above are rejected) and a check digit.
  package static func random() -> ActivationCode {
    var digits = ""
    while digits.utf8.count < 12 {
      for byte in Random.bytes(12) where byte < 250 && digits.utf8.count < 12 { digits += String(byte % 10) }
    }
    return ActivationCode(digits + String(luhnCheckDigit(of: digits[...])))!
  }
}

private func luhnCheckDigit(of digits: Substring) -> Character {
  var sum = 0
  for (position, digit) in digits.utf8.reversed().enumerated() {
    let value = Int(digit) - 48
    sum += position % 2 == 0 ? (value > 4 ? value * 2 - 9 : value * 2) : value
  }
  return Character(String((10 - sum % 10) % 10))
}
