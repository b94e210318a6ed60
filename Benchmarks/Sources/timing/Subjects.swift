// SPDX-License-Identifier: Apache-2.0
import HIDReports
import PINProtection
import Secrets

/// An operation on secret digits, in two classes that must take the same time.
struct Subject {
  let name: String
  let classes: (String, String)
  /// Whether a difference is expected: a positive control of the measurement.
  var isControl = false
  /// Prepares one class in newly allocated memory, so that neither class has an advantage; the returned function
  /// performs the operation once.
  let prepare: (_ isSecond: Bool) -> () -> Void

  static var all: [Subject] {
    [
      Subject(name: "report to digit", classes: ("keypad 1", "keypad 0")) { isSecond in
        let bench = DecodingBench(usage: isSecond ? 0x62 : 0x59)
        return { bench.work() }
      },
      Subject(name: "report to digit", classes: ("main row 5", "keypad 5")) { isSecond in
        let bench = DecodingBench(usage: isSecond ? 0x5D : 0x22)
        return { bench.work() }
      },
      Subject(name: "typed again", classes: ("the same", "first digit differs")) { isSecond in
        let (one, other) = (pin("24689"), pin(isSecond ? "34689" : "24689"))
        return { keep(one == other) }
      },
      Subject(name: "policy", classes: ("24689, good", "13579, a sequence")) { isSecond in
        let pin = pin(isSecond ? "13579" : "24689")
        return { keep(policy.brokenRule(of: pin)) }
      },
      Subject(name: "policy", classes: ("first on the block list", "last on it")) { isSecond in
        let pin = pin(isSecond ? "00999" : "00000")
        return { keep(policy.brokenRule(of: pin)) }
      },
      Subject(name: "early exit", classes: ("the same", "first digit differs"), isControl: true) { isSecond in
        let (one, other) = (pin("24689"), pin(isSecond ? "34689" : "24689"))
        return { keep(isSameWithEarlyExit(one, other)) }
      },
    ]
  }
}

/// One key press and release, through the decoder into a digit in memory of its own.
private final class DecodingBench: KeySink {
  // Used by one thread only.
  private nonisolated(unsafe) var decoder = BootKeyboardDecoder()
  private nonisolated(unsafe) let reports = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 16)

  init(usage: UInt8) {
    reports.initializeMemory(as: UInt8.self, repeating: 0)
    reports[2] = usage
  }

  deinit { reports.deallocate() }

  func work() {
    for start in [0, 8] {
      try? decoder.decode(UnsafeRawBufferPointer(rebasing: reports[start..<start + 8]), into: self)
    }
  }

  func press(_ key: KeyPress) { keep(key) }

  func keypadIsUnavailable(_ why: String) {}
  func keypadIsAvailable() {}
}

private let policy = try! PINPolicy(
  length: 5, maxRepeats: 2, sequencesAllowed: false,
  blockList: (0..<1000).map { number in String("0000\(number)".suffix(5)) })

private func pin(_ digits: String) -> PIN { PIN(digits: SecretBytes(copying: Array(digits.utf8))) }

private func isSameWithEarlyExit(_ one: PIN, _ other: PIN) -> Bool {
  one.digits.withExposedSecret { one in
    other.digits.withExposedSecret { other in
      for index in one.indices where one[index] != other[index] { return false }
      return true
    }
  }
}

/// Prevents the compiler from removing the computation of a value.
@inline(never)
private func keep<Value>(_ value: Value) {}
