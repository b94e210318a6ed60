// SPDX-License-Identifier: Apache-2.0
/// Sanitizes untrusted text for terminals and logs.
extension String {
  /// The text with every control, line-break or bidirectional formatting character replaced by "?".
  /// - Parameter limit: the maximum number of Unicode scalars; longer text is truncated and ends in "…".
  package func printable(atMost limit: Int = 2000) -> String {
    var text = UnicodeScalarView()
    for (index, scalar) in unicodeScalars.enumerated() {
      guard index < limit else {
        text.append("…")
        break
      }
      text.append(scalar.isPrintable ? scalar : "?")
    }
    return String(text)
  }

  /// Whether `printable` would return the text unchanged, regardless of its length.
  package var isPrintable: Bool { unicodeScalars.allSatisfy(\.isPrintable) }
}

extension Unicode.Scalar {
  fileprivate var isPrintable: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: false
    default: true
    }
  }
}
