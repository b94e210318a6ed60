// SPDX-License-Identifier: Apache-2.0
/// Dotted numbers, compared number by number; a missing number is zero.
package struct SoftwareVersion: Comparable {
  private let numbers: [Int]

  /// Text after the dotted numbers ("-beta1", "+build") is ignored.
  package init(_ text: String) {
    numbers = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }.split(separator: ".").map { Int($0) ?? 0 }
  }

  package static func < (one: SoftwareVersion, other: SoftwareVersion) -> Bool {
    for index in 0..<max(one.numbers.count, other.numbers.count) {
      let left = index < one.numbers.count ? one.numbers[index] : 0
      let right = index < other.numbers.count ? other.numbers[index] : 0
      if left != right { return left < right }
    }
    return false
  }

  package static func == (one: SoftwareVersion, other: SoftwareVersion) -> Bool { !(one < other) && !(other < one) }
}
