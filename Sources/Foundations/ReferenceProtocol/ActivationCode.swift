// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// A one-time activation code: random digits and a Luhn check digit (ISO/IEC 7812-1 Annex B), which detects most typing
/// errors before they cost an attempt.
package struct ActivationCode: Sendable, Equatable {
  /// The number of digits, with the check digit.
  package enum Form: Int, Sendable {
    /// For a code that is typed on a keypad, and valid for minutes.
    case short = 13
    /// For one in a file, and valid for days: there may be many of them, and more time to guess one.
    case long = 25
  }

  package let digits: String

  package init?(_ text: String) {
    let digits = text.filter { $0 != " " && $0 != "-" }
    guard Form(rawValue: digits.utf8.count) != nil, digits.utf8.allSatisfy({ (48...57).contains($0) }),
      luhnCheckDigit(of: digits.dropLast()) == digits.last
    else { return nil }
    self.digits = digits
  }

  /// Creates a code of uniformly distributed digits (bytes of 250 and above are rejected) and a check digit.
  package static func random(_ form: Form = .short) -> ActivationCode {
    let count = form.rawValue - 1
    var digits = ""
    while digits.utf8.count < count {
      for byte in Random.bytes(count) where byte < 250 && digits.utf8.count < count { digits += String(byte % 10) }
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
