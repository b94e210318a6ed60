// SPDX-License-Identifier: Apache-2.0
extension String {
  /// Whether a character has more than 30 combining marks, which no language needs: the limit of the stream-safe text
  /// format (UAX #15 §13).
  ///
  /// Swift sorts the marks of a character when it compares or hashes text, in time that grows with the square of their
  /// number: 64,000 take five seconds. Text from outside must be checked before it is compared.
  package var hasTooManyCombiningMarks: Bool {
    var marks = 0
    for scalar in unicodeScalars {
      marks = scalar.isCombiningMark ? marks + 1 : 0
      if marks > 30 { return true }
    }
    return false
  }
}

extension Unicode.Scalar {
  fileprivate var isCombiningMark: Bool {
    // The first combining mark of Unicode.
    guard value >= 0x300 else { return false }
    // These three decompose into marks, but are none themselves.
    return properties.canonicalCombiningClass != .notReordered || [0xF73, 0xF75, 0xF81].contains(value)
  }
}
