// SPDX-License-Identifier: Apache-2.0
import Secrets

/// The effect of a key, without the value of a digit. A keypad may have keys for two and for three zeros.
enum KeyEffect {
  case nothing
  /// The digit of the key, this many times.
  case digits(Int)
  /// A key that is not a digit.
  case key(KeyPress)

  /// - Parameter code: a result of `code(of:)`, no longer secret.
  init(code: UInt8) {
    switch code {
    case 1, 2, 3: self = .digits(Int(code))
    case 4: self = .key(.enter)
    case 5: self = .key(.delete)
    case 6: self = .key(.clear)
    case 7: self = .key(.escape)
    case 8: self = .key(.other)
    default: self = .nothing
    }
  }

  /// Computes the effect in constant time: every usage takes the same path. HID Usage Tables 1.5, chapter 10, page
  /// 0x07.
  static func code(of usage: UInt8) -> UInt8 {
    let digits = mask(usage, isIn: mainDigits) | mask(usage, isIn: keypadDigits)
    let twoZeros = mask(usage, is: 0xB0)
    let threeZeros = mask(usage, is: 0xB1)
    let enter = mask(usage, is: 0x28) | mask(usage, is: 0x58)
    // Backspace, and the keypad's `.`.
    let delete = mask(usage, is: 0x2A) | mask(usage, is: 0x63)
    let clear = mask(usage, is: 0x55)
    let escape = mask(usage, is: 0x29)
    // Some keypads send NumLock around every digit without a key press. The usages of digits do not depend on it.
    let nothing = mask(usage, is: 0x53)
    let known = digits | twoZeros | threeZeros | enter | delete | clear | escape | nothing
    return digits & 1 | twoZeros & 2 | threeZeros & 3 | enter & 4 | delete & 5 | clear & 6 | escape & 7 | ~known & 8
  }
}

/// Usages of the keys 1 to 9, then 0.
private let mainDigits: ClosedRange<UInt8> = 0x1E...0x27
private let keypadDigits: ClosedRange<UInt8> = 0x59...0x62

/// The ASCII digit of a usage. `0` for a key that is not a digit, and for keys for several zeros.
func digit(of usage: UInt8) -> UInt8 {
  let onMain = mask(usage, isIn: mainDigits.lowerBound...mainDigits.upperBound - 1)
  let onKeypad = mask(usage, isIn: keypadDigits.lowerBound...keypadDigits.upperBound - 1)
  return 0x30 | onMain & (usage &- mainDigits.lowerBound &+ 1) | onKeypad & (usage &- keypadDigits.lowerBound &+ 1)
}
