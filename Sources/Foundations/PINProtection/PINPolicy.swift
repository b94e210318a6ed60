// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// The requirements for a new PIN, set by the server. Only the token can enforce them, because the server never sees a
/// PIN.
///
/// All rules process all digits in every case, without branches or table lookups that depend on a digit. The number of
/// digits and the broken rule are not secret: the panel shows them.
package struct PINPolicy: Sendable, Equatable {
  /// The reason why a policy is invalid.
  package enum PolicyError: Error, Equatable, Sendable {
    /// Not 5 to 32 digits.
    case length(Int)
    /// Fewer than 1.
    case maxRepeats(Int)
    /// The entry at this index contains characters other than digits.
    case blockListEntry(Int)
    /// More than `longestBlockList` entries.
    case blockListTooLong(Int)
  }

  package static let lengths = 5...PIN.longest
  package static let longestBlockList = 10_000

  /// The required number of digits.
  package let length: Int
  /// The maximum run of equal digits (2 permits 11 but not 111); nil for no limit.
  package let maxRepeats: Int?
  /// Whether sequences such as 12345 and 97531 are permitted. Digits do not wrap around: 89012 is not a sequence.
  package let sequencesAllowed: Bool
  /// Forbidden PINs in ASCII digits. Entries of another length than the PIN's have no effect.
  private let blockList: [[UInt8]]

  package init(
    length: Int, maxRepeats: Int? = nil, sequencesAllowed: Bool = true, blockList: [String] = []
  ) throws(PolicyError) {
    guard Self.lengths.contains(length) else { throw .length(length) }
    if let maxRepeats, maxRepeats < 1 { throw .maxRepeats(maxRepeats) }
    guard blockList.count <= Self.longestBlockList else { throw .blockListTooLong(blockList.count) }
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    if let index = blockList.firstIndex(where: { $0.isEmpty || !$0.utf8.allSatisfy(digits.contains) }) {
      throw .blockListEntry(index)
    }
    self.length = length
    self.maxRepeats = maxRepeats
    self.sequencesAllowed = sequencesAllowed
    self.blockList = blockList.map { Array($0.utf8) }
  }

  /// The rule that the PIN breaks, or nil. The length is checked first, then the rules in the order of their numbers.
  package func violation(by pin: PIN) -> PINRule? { PINRule(rawValue: brokenRule(of: pin)) }

  /// The `ordinal` of the broken rule, or 0. The only result that may depend on the digits.
  package func brokenRule(of pin: PIN) -> UInt8 {
    pin.digits.withExposedSecret { digits in
      let broken = select(
        isBlocked(digits), PINRule.blockListed.rawValue,
        else: select(
          isSequence(digits), PINRule.sequence.rawValue,
          else: repeatsTooOften(digits) & PINRule.repeats.rawValue))
      return digits.count == length ? broken : PINRule.length.rawValue
    }
  }

  private func isBlocked(_ digits: UnsafeRawBufferPointer) -> UInt8 {
    var blocked: UInt8 = 0
    for entry in blockList where entry.count == digits.count {
      var difference: UInt8 = 0
      for index in entry.indices { difference |= entry[index] ^ digits[index] }
      blocked |= mask(difference, is: 0)
    }
    return blocked
  }

  private func isSequence(_ digits: UnsafeRawBufferPointer) -> UInt8 {
    guard !sequencesAllowed, digits.count > 1 else { return 0 }
    // Differences of ASCII digits are within ±9, so they are unambiguous modulo 256.
    let distance = digits[1] &- digits[0]
    var sequence = ~mask(distance, is: 0)
    for index in 2..<max(2, digits.count) { sequence &= mask(digits[index] &- digits[index - 1], is: distance) }
    return sequence
  }

  private func repeatsTooOften(_ digits: UnsafeRawBufferPointer) -> UInt8 {
    let longest = UInt8(clamping: maxRepeats ?? .max)
    var run: UInt8 = 1
    var tooOften: UInt8 = 0
    for index in 1..<max(1, digits.count) {
      run = 1 &+ run & mask(digits[index], is: digits[index - 1])
      tooOften |= mask(longest, isLessThan: run)
    }
    return tooOften
  }
}
