/// Texts from outside on their way to a terminal or a log.
extension String {
  /// Without anything that moves a cursor, ends a line or turns the direction of writing: each such character is "?".
  /// - Parameter limit: Unicode scalars; what is longer ends in "…".
  func printable(atMost limit: Int = 2000) -> String {
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

  /// Whether `printable` would leave it as it is, at any length.
  var isPrintable: Bool { unicodeScalars.allSatisfy(\.isPrintable) }
}

extension Unicode.Scalar {
  fileprivate var isPrintable: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: false
    default: true
    }
  }
}
