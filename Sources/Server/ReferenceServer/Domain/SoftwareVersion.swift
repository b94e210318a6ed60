// SPDX-License-Identifier: Apache-2.0
/// Dotted numbers, compared number by number; a missing number is zero.
struct SoftwareVersion: Comparable {
  private let numbers: [Int]

  /// Text after the dotted numbers ("-beta1", "+build") is ignored.
  init(_ text: String) {
    numbers = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }.split(separator: ".").map { Int($0) ?? 0 }
  }

  static func < (one: SoftwareVersion, other: SoftwareVersion) -> Bool {
    for index in 0..<max(one.numbers.count, other.numbers.count) {
      let left = index < one.numbers.count ? one.numbers[index] : 0
      let right = index < other.numbers.count ? other.numbers[index] : 0
      if left != right { return left < right }
    }
    return false
  }

  static func == (one: SoftwareVersion, other: SoftwareVersion) -> Bool { !(one < other) && !(other < one) }
}
