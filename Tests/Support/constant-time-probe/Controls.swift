// SPDX-License-Identifier: Apache-2.0
import Secrets

/// What must not be done with digits, done on purpose: memcheck has to report each. They take what the real way gives
/// them, so that they also show that the secret arrives.
enum Control {
  @inline(never)
  static func compareWithEarlyExit(_ one: PIN, _ other: PIN) {
    let areSame = one.digits.withExposedSecret { one in
      other.digits.withExposedSecret { other in
        for index in one.indices where one[index] != other[index] { return false }
        return true
      }
    }
    print("the same:", Secrecy.revealed("result of a control", areSame))
  }

  @inline(never)
  static func lookUp(_ pin: PIN) {
    let words = (0...UInt8.max).map { $0 &* 37 }
    words.withUnsafeBufferPointer { words in
      pin.digits.withExposedSecret { digits in
        var sum: UInt8 = 0
        // Unchecked, as a bounds check would be reported in its place.
        for digit in digits { sum &+= words.baseAddress![Int(digit)] }
        print("sum:", Secrecy.revealed("result of a control", sum))
      }
    }
  }

  @inline(never)
  static func branch(_ pin: PIN) {
    pin.digits.withExposedSecret { digits in
      // Output on one side only: no compiler makes one instruction of that.
      for digit in digits where digit > 0x34 { print("a high digit") }
    }
  }

  @inline(never)
  static func decodeNaively(_ usage: UInt8) {
    let usages = SecretBytes(copying: [usage])
    usages.withExposedSecret { usages in
      Secrecy.hide(usages)
      switch usages[0] {
      case 0x1E...0x27: print("main row")
      case 0x59...0x62: print("keypad")
      default: print("no digit")
      }
    }
  }
}
